// The child of oidc-process.ts: prints its address; each line on standard input is the claims of the next person.

import { createInterface } from "node:readline";
import { startProvider } from "./oidc-provider.ts";

const provider = await startProvider(process.argv[2] ?? "");
process.stdout.write(`${provider.issuer}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  provider.claims = JSON.parse(line);
  process.stdout.write("set\n");
}
