// Tests through the relay: two peers in this browser that may use relayed candidates only.

const MESSAGES = 500;
const BURST = 10;
const BURST_MS = 10;
const SIZE = 1024;
const OPEN_MAX_MS = 15_000;
const ECHO_MAX_MS = 3000;

/** A private address that no rule of the default configuration allows. */
export const PEER = "10.255.255.254";

const where = (candidate) => `${candidate.address ?? candidate.ip}:${candidate.port}`;
const relayed = (iceServers) => new RTCPeerConnection({ iceServers, iceTransportPolicy: "relay" });
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Sends 500 messages through both relays and back. */
export async function runWay(iceServers) {
  const peers = [relayed(iceServers), relayed(iceServers)];
  try {
    const channel = await open(peers, exchange(peers));
    const pair = await selectedPair(peers[0]);
    if (pair.local.candidateType !== "relay" || pair.remote.candidateType !== "relay") throw new Error("the selected pair is not relayed");
    const times = (await echo(channel)).sort((a, b) => a - b);
    const lost = MESSAGES - times.length;
    const result = { candidate: `relay ${where(pair.local)}`, trip: times.length > 0 ? `${times[times.length >> 1].toFixed(1)} ms` : "–", lost: `${lost} of ${MESSAGES}` };
    return lost > MESSAGES / 10 ? { ...result, state: "failed", says: "too many are lost" } : result;
  } finally {
    peers.forEach((peer) => peer.close());
  }
}

/** Passes each peer's candidates to the other; returns the list of candidate errors, which grows. */
function exchange(peers) {
  const errors = [];
  peers.forEach((peer, index) => {
    peer.addEventListener("icecandidate", ({ candidate }) => candidate && peers[1 - index].addIceCandidate(candidate).catch(() => {}));
    peer.addEventListener("icecandidateerror", ({ errorCode, errorText }) => errors.push(`${errorCode} ${errorText}`));
  });
  return errors;
}

async function open([a, b], errors) {
  // Nothing is sent again: what is lost is seen.
  const channel = a.createDataChannel("trial", { ordered: false, maxRetransmits: 0 });
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

/** Sends the messages in bursts and compares the echoes; returns the round-trip times in milliseconds. */
async function echo(channel) {
  const [sent, times] = [new Map(), []];
  const done = new Promise((resolve, reject) => {
    channel.addEventListener("close", () => reject(new Error("the data channel closed")), { once: true });
    channel.addEventListener("message", ({ data }) => {
      const back = new Uint8Array(data);
      const number = new DataView(data).getUint32(0);
      const of = sent.get(number);
      if (!of) return;
      if (back.length !== SIZE || back.some((byte, index) => byte !== of.message[index])) reject(new Error(`the echo of message ${number} differs`));
      times.push(performance.now() - of.at);
      sent.delete(number);
      if (times.length === MESSAGES) resolve();
    });
  });
  done.catch(() => {});
  for (let number = 0; number < MESSAGES; number += 1) {
    const message = crypto.getRandomValues(new Uint8Array(SIZE));
    new DataView(message.buffer).setUint32(0, number);
    sent.set(number, { message, at: performance.now() });
    channel.send(message);
    if (number % BURST === BURST - 1) await sleep(BURST_MS);
  }
  await Promise.race([done, sleep(ECHO_MAX_MS)]);
  return times;
}

/** A wrong password must be answered with 401. */
export async function wrongPassword(iceServers) {
  const peer = relayed(iceServers.map((server) => ({ ...server, credential: `${server.credential}-wrong` })));
  try {
    const refused = new Promise((resolve, reject) => {
      peer.addEventListener("icecandidateerror", ({ errorCode, errorText }) => resolve(`${errorCode} ${errorText}`));
      peer.addEventListener("icecandidate", ({ candidate }) => candidate?.type === "relay" && reject(new Error("a wrong password is accepted")));
      setTimeout(() => reject(new Error("no answer")), OPEN_MAX_MS);
    });
    peer.createDataChannel("trial");
    await peer.setLocalDescription();
    const says = await refused;
    if (!says.startsWith("401")) throw new Error(`answered ${says}, not 401`);
    return { says: `refused with ${says.trim()}, as it must be` };
  } finally {
    peer.close();
  }
}

const denied = async () => {
  const drops = await (await fetch("/api/v1/turn/drops")).json();
  return new Map(drops.denied.map(({ rule, count }) => [rule, count]));
};

/** A private peer must be denied. The browser does not say so: the server's count of its rules does. */
export async function privatePeer(iceServers) {
  const peers = [relayed(iceServers), new RTCPeerConnection()];
  try {
    const before = await denied();
    const gathered = new Promise((resolve, reject) => {
      peers[0].addEventListener("icecandidate", ({ candidate }) => candidate?.type === "relay" && resolve());
      setTimeout(() => reject(new Error("no relayed candidate")), OPEN_MAX_MS);
    });
    peers[0].createDataChannel("trial");
    await peers[0].setLocalDescription();
    await peers[1].setRemoteDescription(peers[0].localDescription);
    await peers[1].setLocalDescription();
    await peers[0].setRemoteDescription({ type: "answer", sdp: peers[1].localDescription.sdp.replace(/a=candidate:.*\r\n/g, "") });
    await gathered;
    await peers[0].addIceCandidate({ candidate: `candidate:1 1 udp 2122260223 ${PEER} 50000 typ host`, sdpMid: "0", sdpMLineIndex: 0 });
    for (const end = performance.now() + OPEN_MAX_MS / 3; performance.now() < end; await sleep(250)) {
      // Peers of other tests that end meanwhile are denied by the rule of own addresses.
      const rule = [...await denied()].find(([name, count]) => count > (before.get(name) ?? 0) && !name.startsWith("deny own"));
      if (rule) return { says: `refused with 403, rule ${rule[0]}` };
    }
    throw new Error("not refused: a rule of the configuration allows it, or it did not reach the server");
  } finally {
    peers.forEach((peer) => peer.close());
  }
}
