// The relay test: two peers in this browser that may use relayed candidates only.

const ROUNDS = 64;
const SIZE = 1024;
const OPEN_MAX_MS = 15_000;
const byId = (id) => document.getElementById(id);

let iceServers = null;

/** Fetches the trial credential and shows it. */
export async function offerTrial() {
  const answer = await fetch("/api/v1/turn/ice-servers");
  if (!answer.ok) return;
  ({ iceServers } = await answer.json());
  byId("snippet").textContent = snippet(iceServers);
}

/** The argument of `RTCPeerConnection` as JSON, one block per server. */
function snippet(servers) {
  const blocks = servers.map((server) => {
    const lines = Object.entries(server).map(([key, value]) => `    ${JSON.stringify(key)}: ${JSON.stringify(value)}`);
    return `{\n${lines.join(",\n")}\n  }`;
  });
  return `{\n  "iceServers": [${blocks.join(", ")}]\n}`;
}

byId("copy").addEventListener("click", async () => {
  const status = byId("copied");
  try {
    await navigator.clipboard.writeText(byId("snippet").textContent);
    status.textContent = "Copied.";
  } catch {
    getSelection().selectAllChildren(byId("snippet"));
    status.textContent = "Selected. Press Ctrl-C to copy.";
  }
});

byId("try").addEventListener("click", async (event) => {
  const button = event.target;
  const outcome = byId("outcome");
  button.disabled = true;
  byId("steps").replaceChildren();
  outcome.removeAttribute("data-state");
  outcome.textContent = "";
  try {
    outcome.textContent = await trial(step);
    outcome.dataset.state = "passed";
  } catch (error) {
    outcome.textContent = `Failed: ${error.message}`;
    outcome.dataset.state = "failed";
  } finally {
    button.disabled = false;
  }
});

function step(what, detail) {
  const item = document.createElement("li");
  const small = document.createElement("div");
  small.className = "detail";
  small.textContent = detail;
  item.append(what, small);
  byId("steps").append(item);
}

async function trial(report) {
  const config = { iceServers, iceTransportPolicy: "relay" };
  const peers = [new RTCPeerConnection(config), new RTCPeerConnection(config)];
  try {
    const errors = relayCandidates(peers);
    const channel = await open(peers, errors);
    const pair = await selectedPair(peers[0]);
    report("Connected", `${pair.local.candidateType} ${where(pair.local)} to ${pair.remote.candidateType} ${where(pair.remote)}`);
    if (pair.local.candidateType !== "relay" || pair.remote.candidateType !== "relay") throw new Error("the selected pair is not relayed");
    const times = await echo(channel);
    times.sort((a, b) => a - b);
    const median = times[times.length >> 1];
    report("Echoed", `${ROUNDS} of ${ROUNDS} messages, unchanged; ${(2 * ROUNDS * SIZE).toLocaleString("en")} bytes of payload`);
    return `Passed. Median round trip ${median.toFixed(1)} ms; each message crosses both relays in both directions.`;
  } finally {
    peers.forEach((peer) => peer.close());
  }
}

const where = (candidate) => `${candidate.address ?? candidate.ip}:${candidate.port}`;

/** Passes each peer's candidates to the other; returns the list of candidate errors, which grows. */
function relayCandidates(peers) {
  const errors = [];
  peers.forEach((peer, index) => {
    peer.addEventListener("icecandidate", ({ candidate }) => candidate && peers[1 - index].addIceCandidate(candidate));
    peer.addEventListener("icecandidateerror", ({ errorCode, errorText }) => errors.push(`${errorCode} ${errorText}`));
  });
  return errors;
}

async function open([a, b], errors) {
  const channel = a.createDataChannel("trial");
  channel.binaryType = "arraybuffer";
  b.addEventListener("datachannel", ({ channel: other }) => {
    other.binaryType = "arraybuffer";
    other.addEventListener("message", ({ data }) => other.send(data));
  });
  const opened = new Promise((resolve, reject) => {
    channel.addEventListener("open", resolve);
    const why = () => new Error(errors.length > 0
      ? `the server replied ${errors[0]}`
      : `no relayed connection within ${OPEN_MAX_MS / 1000} s. Browsers do not use a relay if loopback is the only network interface`);
    setTimeout(() => reject(why()), OPEN_MAX_MS);
  });
  await a.setLocalDescription();
  await b.setRemoteDescription(a.localDescription);
  await b.setLocalDescription();
  await a.setRemoteDescription(b.localDescription);
  await opened;
  return channel;
}

async function selectedPair(peer) {
  const stats = await peer.getStats();
  const transport = [...stats.values()].find((entry) => entry.type === "transport");
  const pair = stats.get(transport?.selectedCandidatePairId) ?? [...stats.values()].find((entry) => entry.type === "candidate-pair" && entry.nominated);
  if (!pair) throw new Error("the browser reports no selected candidate pair");
  return { local: stats.get(pair.localCandidateId), remote: stats.get(pair.remoteCandidateId) };
}

/** Sends the messages one at a time and compares the echoes; returns the round-trip times in milliseconds. */
async function echo(channel) {
  const times = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const sent = crypto.getRandomValues(new Uint8Array(SIZE));
    const back = new Promise((resolve, reject) => {
      channel.addEventListener("message", ({ data }) => resolve(new Uint8Array(data)), { once: true });
      channel.addEventListener("close", () => reject(new Error("the data channel closed")), { once: true });
    });
    const start = performance.now();
    channel.send(sent);
    const received = await back;
    times.push(performance.now() - start);
    if (received.length !== SIZE || received.some((byte, index) => byte !== sent[index])) throw new Error(`the echo of message ${round} differs`);
  }
  return times;
}
