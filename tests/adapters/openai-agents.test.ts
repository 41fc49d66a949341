import path from "node:path";
import { beforeAll } from "vitest";
import { install } from "../../scripts/install.mjs";
import { storiesOf } from "./stories.ts";

const folder = path.join(import.meta.dirname, "../../tools/frameworks");
beforeAll(() => install(folder, "agent frameworks", process.env));

storiesOf({
  name: "OpenAI Agents",
  child: "openai-agents-child.ts",
  ways: ["run", "streamed run"],
  subAgents: { ways: ["handoff", "asTool"] },
});
