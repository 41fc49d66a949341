// The server that is flooded, in a process of its own, over one SQLite file with two tenants.

import { createGate } from "../../../src/gate/create-gate.ts";
import { allowAlways } from "../../../src/gate/review.ts";
import { createServer, type ServerOptions } from "../../../src/http/index.ts";
import { NO_RULES } from "../../../src/policy/policy.ts";
import { sqliteStore } from "../../../src/store/sqlite/index.ts";
import { createWorld } from "../../support/port-world.ts";
import { sampleVerdictValidator } from "../../support/validators.ts";
import { newSession } from "../passes.ts";

export interface ServedPlan {
  readonly file: string;
  readonly limits: NonNullable<ServerOptions["limits"]>;
  readonly flooders: number;
}

/** Where it is, and a token for everybody. */
export interface Served {
  readonly url: string;
  readonly loud: readonly string[];
  readonly quiet: string;
  readonly reviewer: string;
}

const { file, limits, flooders } = JSON.parse(process.argv[2] ?? "") as ServedPlan;
const store = sqliteStore({ file });
const portOf = (tenant: string) =>
  createGate({
    store,
    tenant,
    tools: Object.values(createWorld().tools),
    validators: {
      tech: sampleVerdictValidator("schema"),
      business: sampleVerdictValidator("limits"),
    },
    guard: allowAlways,
    policy: NO_RULES,
  });
const gates = { loud: portOf("loud"), quiet: portOf("quiet") };
const server = await createServer({ store, gates, limits });
const token = (tenant: string, subject: string) =>
  server.makeToken({ tenant, subject, roles: ["agent"] });
const served: Served = {
  url: server.url,
  loud: await Promise.all(Array.from({ length: flooders }, (_, n) => token("loud", `agent:${n}`))),
  quiet: await token("quiet", "agent:one"),
  reviewer: await newSession(server, {
    tenant: "quiet",
    subject: "person:ada",
    roles: ["reviewer"],
  }),
};
process.on("disconnect", () => process.exit(0));
process.send?.(served);
