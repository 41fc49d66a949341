// A reader's exercise with nothing but the guide and the packed package: gate a tool with an undo, stop, decide, and roll back
// in a new process. Every line that it runs is a block of a guide page; what joins them is written here.

import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { packedProject } from "./packed.ts";
import { readPage, root } from "./pages.ts";

const run = promisify(execFile);
const scratch = mkdtempSync(path.join(tmpdir(), "sallyport-stranger-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const { blocks } = readPage("docs/guide/ai-sdk.md");

function blockWith(wanted: (block: (typeof blocks)[number]) => boolean): string {
  const found = blocks.filter((block) => block.language === "ts" && wanted(block));
  expect(found.length, "the guide has exactly one such block").toBe(1);
  return found[0]?.text ?? "";
}

test("from the guide alone: a tool is gated with an undo, the process ends, and another one rolls it back, once", {
  timeout: 240_000,
}, async () => {
  const project = await packedProject(scratch);
  cpSync(path.join(root, "examples/ai-sdk/agent.ts"), path.join(project, "agent.ts"));
  const save = (file: string, text: string) => writeFileSync(path.join(project, file), text);
  const start = async (file: string) =>
    (await run(process.execPath, ["--disable-warning=ExperimentalWarning", file], { cwd: project }))
      .stdout;
  const ledger = () => readFileSync(path.join(project, "ledger.txt"), "utf8");

  for (const file of ["billing.ts", "ask.ts", "go-on.ts", "roll-back.ts"]) {
    save(
      file,
      blockWith(({ info }) => info === file),
    );
  }
  const deciding = blockWith(({ info, text }) => info === "" && text.includes(".approve("));
  save("decide.ts", `import { gate } from "./billing.ts";\n${deciding}await gate.close();\n`);

  await start("ask.ts");
  expect(ledger, "nothing may happen before the yes").toThrow("ENOENT");
  expect(await start("go-on.ts"), "nothing goes on before the yes").toBe("");
  await start("decide.ts");
  expect(await start("go-on.ts")).toBe("continued 1\n");
  expect(await start("go-on.ts")).toBe("");
  expect(ledger()).toBe("2041 12900\n");
  expect(await start("roll-back.ts")).toMatch(/^The rollback is complete: 1 operation/);
  expect(ledger()).toBe("2041 12900\n2041 cancelled\n");
  expect(await start("roll-back.ts")).toMatch(/^There was nothing to undo/);
  expect(ledger()).toBe("2041 12900\n2041 cancelled\n");
});
