// `npm start`: the server with its console and the demo. Arguments go on to `sallyport demo`.

import path from "node:path";
import { main } from "../src/cli/main.ts";
import { buildConsole } from "./build-console.ts";

await buildConsole({ always: false });
const data = path.join(path.dirname(import.meta.dirname), ".sallyport");
process.exitCode = await main(["--data", data, "demo", ...process.argv.slice(2)]);
