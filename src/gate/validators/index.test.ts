import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as validators from "./index.ts";

const folder = new URL(".", import.meta.url);

test("the entry offers everything but the judge [I-05 I-07 I-11]", () => {
  expect(Object.keys(validators).toSorted()).toEqual([
    "allMustApprove",
    "createBreaker",
    "decodeJson",
    "evaluatorAsReplayListener",
    "evaluatorAsValidator",
    "replay",
    "rulesValidator",
    "validatedTool",
    "validatorAsEvaluator",
    "validatorAsReplayListener",
    "waterfall",
  ]);
});

test("only the judge imports the AI SDK, which is an optional peer [I-05]", () => {
  const importers = readdirSync(folder)
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .filter((file) => /from "ai"|import\("ai/.test(readFileSync(new URL(file, folder), "utf8")));
  expect(importers).toEqual(["judge.ts"]);
});

test("the entry loads in a plain Node where the AI SDK cannot be found [I-05]", () => {
  const entry = new URL("index.ts", folder).href;
  const script = `
    import { registerHooks } from "node:module";
    registerHooks({ resolve(name, context, next) {
      if (name === "ai" || name.startsWith("ai/")) throw new Error("ai was imported");
      return next(name, context);
    } });
    console.log(Object.keys(await import(${JSON.stringify(entry)})).length);`;
  const output = execFileSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
  });
  expect(output.trim()).toBe("11");
});
