// Drives a server with a TypeScript client, and prints what it saw as one line of JSON.
// Usage: node drive.mjs v1|v2 legacy|2026-07-28 http URL TOKEN, or ... stdio COMMAND ARGUMENTS
// It is run in the folder that holds node_modules, wherever this file lies.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [sdk, era, kind, target, ...rest] = process.argv.slice(2);
const require = createRequire(`${process.cwd()}/package.json`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

async function parts() {
  if (sdk === "v2") {
    const [main, stdio] = await Promise.all([load("@modelcontextprotocol/client"), load("@modelcontextprotocol/client/stdio")]);
    return { ...main, ...stdio };
  }
  const from = "@modelcontextprotocol/sdk/client";
  const all = await Promise.all([load(`${from}/index.js`), load(`${from}/streamableHttp.js`), load(`${from}/stdio.js`)]);
  return Object.assign({}, ...all);
}

const { Client, StreamableHTTPClientTransport, StdioClientTransport } = await parts();
const negotiation = era === "legacy" ? { mode: "legacy" } : { mode: { pin: era } };
const client = new Client({ name: "drive", version: "1" }, sdk === "v2" ? { versionNegotiation: negotiation } : {});
const transport =
  kind === "http"
    ? new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers: { Authorization: `Bearer ${rest[0]}` } } })
    : new StdioClientTransport({ command: target, args: rest, stderr: "inherit" });
await client.connect(transport);

const call = (name, args, options) =>
  sdk === "v2"
    ? client.callTool({ name, arguments: args }, options)
    : client.callTool({ name, arguments: args }, undefined, options);

const seen = { instructions: client.getInstructions() ?? "" };
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
const asked = await call("ask", { query: "is this user a fraud?" });
const handle = asked.structuredContent.handle;
seen.asked = asked.content[0].text;
const progress = [];
const investigate = { route: "fraud://tools/investigate", params: { user_id: 7 } };
const done = await call(
  "get",
  { routes: [investigate, investigate, { route: "fraud://tools/break" }], handle },
  { onprogress: (each) => progress.push(each.progress) },
);
seen.progress = progress;
seen.summary = done.structuredContent.summary;
const cancel = new AbortController();
const waiting = call("get", { routes: [investigate, { route: "fraud://tools/wait" }] }, { signal: cancel.signal, onprogress: () => cancel.abort("enough") });
seen.cancelled = await waiting.then(() => "no", () => "yes");
const wrong = await call("get", { routes: [] });
seen.wrong = { isError: wrong.isError, text: wrong.content[0].text };
seen.resources = (await client.listResources()).resources.map((each) => each.uri);
seen.read = (await client.readResource({ uri: "fraud://resources/handbook" })).contents[0].text;
seen.absent = await client.readResource({ uri: "fraud://resources/none" }).then(() => 0, (error) => error.code);
await client.close();
console.log(JSON.stringify(seen));
