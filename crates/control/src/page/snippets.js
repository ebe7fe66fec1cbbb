// What to paste where calls are made: five products.

import { oneOf, text } from "/figures/parts.js";

const byId = (id) => document.getElementById(id);
const SECRET = "the secret of --auth-secret-file";
let shown = "js";
let servers = [];

/** `turn:host:port?transport=tcp` in its parts. */
export function parsed(url) {
  const [, scheme, host, port, transport] = /^(turns?):(\[[^\]]+\]|[^:?]+)(?::(\d+))?(?:\?transport=(\w+))?$/.exec(url) ?? [];
  return { scheme, host, port: Number(port ?? (scheme === "turns" ? 5349 : 3478)), transport: transport ?? (scheme === "turns" ? "tcp" : "udp") };
}

const urls = () => servers.flatMap(({ urls: each }) => each);
const ways = () => urls().map(parsed);

function js() {
  const blocks = servers.map((server) => {
    const lines = Object.entries(server).map(([key, value]) => `    ${JSON.stringify(key)}: ${JSON.stringify(value)}`);
    return `{\n${lines.join(",\n")}\n  }`;
  });
  return `{\n  "iceServers": [${blocks.join(", ")}]\n}`;
}

function synapse() {
  const list = urls().map((url) => `  - "${url.includes("?") || url.startsWith("turns") ? url : `${url}?transport=udp`}"`);
  return `# homeserver.yaml\nturn_uris:\n${list.join("\n")}\nturn_shared_secret: "${SECRET}"\nturn_user_lifetime: 1h\nturn_allow_guests: false\n`;
}

function jitsi() {
  const list = ways().map(({ scheme, host, port, transport }) => `  { type = "${scheme}", host = "${host}", port = ${port}, transport = "${transport}", secret = true, ttl = 86400, algorithm = "turn" },`);
  return `-- /etc/prosody/conf.avail/MEETING-HOST.cfg.lua\nexternal_service_secret = "${SECRET}"\nexternal_services = {\n${list.join("\n")}\n}\n-- and in modules_enabled: "external_services"\n`;
}

function nextcloud() {
  const commands = new Map();
  for (const { scheme, host, port, transport } of ways()) {
    const key = `${scheme} ${host}:${port}`;
    commands.set(key, [...(commands.get(key) ?? []), transport]);
  }
  return [...commands].map(([key, transports]) => `occ talk:turn:add ${key} ${[...new Set(transports)].join(",")} --secret="${SECRET}"`).join("\n") + "\n";
}

function livekit() {
  const list = ways().map(({ scheme, host, port, transport }) => `    - host: ${host}\n      port: ${port}\n      protocol: ${scheme === "turns" ? "tls" : transport}\n      username: "a user of --user-file"\n      credential: "its password"`);
  return `# config.yaml\nrtc:\n  turn_servers:\n${list.join("\n")}\n`;
}

const PRODUCTS = { js: ["JavaScript", js], synapse: ["Synapse", synapse], jitsi: ["Jitsi", jitsi], nextcloud: ["Nextcloud Talk", nextcloud], livekit: ["LiveKit", livekit] };

function draw() {
  text(byId("snippet"), PRODUCTS[shown][1]());
}

/** Shows the snippets for these servers. */
export function showSnippets(iceServers) {
  servers = iceServers;
  draw();
}

byId("products").append(oneOf("Product", Object.entries(PRODUCTS).map(([key, [name]]) => [key, name]), shown, (value) => {
  shown = value;
  text(byId("copied"), "");
  draw();
}));

byId("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(byId("snippet").textContent);
    text(byId("copied"), "Copied.");
  } catch {
    getSelection().selectAllChildren(byId("snippet"));
    text(byId("copied"), "Selected. Press Ctrl-C to copy.");
  }
});
