// A whole life of a proxy through toxiproxy-node-client: node drive.mjs CLIENT URL UPSTREAM
const [client, url, upstream] = process.argv.slice(2);
const { Toxiproxy } = await import(client);
const toxiproxy = new Toxiproxy(url);
const proxy = await toxiproxy.createProxy({ name: "node", listen: "127.0.0.1:0", upstream });
await proxy.addToxic({ name: "slow", type: "latency", attributes: { latency: 50, jitter: 0 } });
const seen = await (await toxiproxy.get("node")).getToxic("slow");
await toxiproxy.reset();
const left = await (await toxiproxy.get("node")).getToxic("slow").then(() => 1, () => 0);
const off = await proxy.update({ ...(await toxiproxy.get("node")), enabled: false });
await proxy.remove();
const gone = !Object.keys(await toxiproxy.getAll()).includes("node");
console.log(JSON.stringify({ latency: seen.attributes.latency, left, enabled: off.enabled, gone }));
