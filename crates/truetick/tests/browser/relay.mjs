// Two RTCPeerConnections in one page, both with `iceTransportPolicy: "relay"`, echo checksummed bytes over a data
// channel. Prints one line of JSON with what came back and which candidate pair carried it; asserting is the caller's.
//
// node relay.mjs CHROMIUM TURN_URL USERNAME PASSWORD [CHROMIUM_FLAG...]
//
// With HOLD_SECONDS in the environment the call goes on for as long, with a payload a second; in the middle of it each end
// gets one more candidate of the other, for which it needs a permission.
//
// With ANSWERER=direct in the environment the answering end has candidates of its host only, and one relay carries the call.
//
// Patience ends early once both ends have gathered and neither has a candidate.

import { chromium } from "playwright-core";

const [executablePath, url, username, credential, ...flags] = process.argv.slice(2);
const args = [
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-gpu",
  "--disable-quic",
  "--disable-sync",
  "--no-first-run",
  "--no-sandbox",
  ...flags,
];

// Runs in the page. The answering side echoes every message; the offering side checks each echo byte by byte through
// SHA-256 of what it sent.
async function echoThroughRelays({ iceServers, sizes, patience_ms, hold_s, is_direct }) {
  const config = { iceServers, iceTransportPolicy: "relay" };
  const offerer = new RTCPeerConnection(config);
  const answerer = new RTCPeerConnection(is_direct ? {} : config);
  const candidates = [];
  const iceErrors = [];
  for (const [from, to] of [[offerer, answerer], [answerer, offerer]]) {
    from.onicecandidate = ({ candidate }) => {
      if (!candidate || !candidate.candidate) return;
      candidates.push(candidate.candidate);
      to.addIceCandidate(candidate);
    };
    from.onicecandidateerror = (e) => iceErrors.push(`${e.errorCode} ${e.errorText} ${e.url}`);
  }
  const digest = async (bytes) =>
    Array.from(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))).join();
  const selectedPair = async (connection) => {
    const stats = await connection.getStats();
    const transport = [...stats.values()].find((s) => s.type === "transport" && s.selectedCandidatePairId);
    if (!transport) return null;
    const pair = stats.get(transport.selectedCandidatePairId);
    const local = stats.get(pair.localCandidateId);
    const remote = stats.get(pair.remoteCandidateId);
    return {
      local: local.candidateType,
      localRelay: `${local.address}:${local.port}`,
      relayProtocol: local.relayProtocol,
      remote: remote.candidateType,
      remoteRelay: `${remote.address}:${remote.port}`,
      bytesSent: pair.bytesSent,
      bytesReceived: pair.bytesReceived,
    };
  };

  answerer.ondatachannel = ({ channel }) => {
    channel.binaryType = "arraybuffer";
    channel.onmessage = ({ data }) => channel.send(data);
  };
  const channel = offerer.createDataChannel("echo");
  channel.binaryType = "arraybuffer";
  const opened = new Promise((resolve) => (channel.onopen = () => resolve(true)));
  const expired = new Promise((resolve) => setTimeout(() => resolve(false), patience_ms));
  const gathered = Promise.all([offerer, answerer].map((connection) => new Promise((resolve) => {
    connection.onicegatheringstatechange = () => connection.iceGatheringState === "complete" && resolve();
  })));
  const hopeless = new Promise((resolve) => gathered.then(() => candidates.length === 0 && resolve(false)));

  await offerer.setLocalDescription();
  await answerer.setRemoteDescription(offerer.localDescription);
  await answerer.setLocalDescription();
  await offerer.setRemoteDescription(answerer.localDescription);

  const result = { opened: await Promise.race([opened, hopeless, expired]), echoed: 0, bytes: 0, candidates, iceErrors };
  if (!result.opened) return result;

  const expected = [];
  const echoes = new Promise((resolve) => {
    channel.onmessage = async ({ data }) => {
      const at = result.echoed++;
      result.bytes += data.byteLength;
      if ((await expected[at]) !== (await digest(data))) result.mismatch = at;
      if (result.echoed === sizes.length) resolve(true);
    };
  });
  for (const size of sizes) {
    const bytes = new Uint8Array(size);
    for (let at = 0; at < size; at += 65536) crypto.getRandomValues(bytes.subarray(at, at + 65536));
    expected.push(digest(bytes));
    channel.send(bytes);
  }
  result.completed = await Promise.race([echoes, expired]);
  result.held = { sent: 0, matched: 0 };
  const ends_at = performance.now() + 1000 * hold_s;
  for (let added = false; performance.now() < ends_at; ) {
    if (!added && performance.now() > ends_at - 500 * hold_s) {
      added = true;
      for (const end of [offerer, answerer]) {
        const more = "candidate:9 1 udp 1 127.0.0.9 9 typ host";
        await end.addIceCandidate({ candidate: more, sdpMid: "0", sdpMLineIndex: 0 });
      }
    }
    const sent = crypto.getRandomValues(new Uint8Array(200));
    result.held.sent += 1;
    const back = new Promise((resolve) => {
      channel.onmessage = ({ data }) => resolve(new Uint8Array(data).join() === sent.join());
      setTimeout(() => resolve(false), patience_ms);
    });
    channel.send(sent);
    result.held.matched += (await back) ? 1 : 0;
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  result.offerer = await selectedPair(offerer);
  result.answerer = await selectedPair(answerer);
  offerer.close();
  answerer.close();
  return result;
}

const browser = await chromium.launch({ executablePath, headless: true, args });
try {
  const page = await browser.newPage();
  // crypto.subtle needs a secure origin, and about:blank is none; nothing is fetched, the route answers.
  await page.route("https://relay.test/", (route) => route.fulfill({ contentType: "text/html", body: "<!doctype html>" }));
  await page.goto("https://relay.test/");
  const sizes = [...Array(400).keys()].map((at) => 1 + ((at * 97) % 1200)).concat([16384, 65536, 200000, 262144]);
  const iceServers = [{ urls: url, username, credential }];
  const hold_s = Number(process.env.HOLD_SECONDS ?? 0);
  const is_direct = process.env.ANSWERER === "direct";
  const result = await page.evaluate(echoThroughRelays, { iceServers, sizes, patience_ms: 30000, hold_s, is_direct });
  console.log(JSON.stringify({ expected: { messages: sizes.length, bytes: sizes.reduce((a, b) => a + b) }, ...result }));
} finally {
  await browser.close();
}
