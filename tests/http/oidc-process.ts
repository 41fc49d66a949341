// The OpenID provider of the tests as a process of its own, as an organisation runs one: started here, or run as the child.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

export interface ProviderProcess {
  readonly issuer: string;
  /** Sets the claims of whoever signs in next. */
  claim(claims: object): Promise<void>;
}

export async function providerProcess(clientId: string): Promise<ProviderProcess> {
  const child = fileURLToPath(new URL("./oidc-child.ts", import.meta.url));
  const process = spawn(globalThis.process.execPath, [child, clientId], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => process.once("close", resolve));
  onTestFinished(async () => {
    process.kill("SIGKILL");
    await ended;
  });
  const lines = createInterface({ input: process.stdout })[Symbol.asyncIterator]();
  const next = async () => String((await lines.next()).value);
  return {
    issuer: await next(),
    async claim(claims) {
      process.stdin.write(`${JSON.stringify(claims)}\n`);
      await next();
    },
  };
}
