import { storiesOf } from "./stories.ts";

storiesOf({
  name: "AI SDK",
  child: "ai-child.ts",
  ways: ["generateText", "streamText", "agent", "agent.stream"],
  subAgents: { ways: ["sub-agent"] },
});
