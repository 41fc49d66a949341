import { once } from "node:events";
import { createServer } from "node:net";

/** One that nobody listens on now. Whoever is to come back at the same address after a kill needs to know it beforehand. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (typeof address !== "object" || address === null) throw new Error("no port is free");
  return address.port;
}
