import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

/** Counted, so that a busy machine changes nothing; `import-cost.test.ts` measures the time. */
const MOST_FILES = 24;

/** With what each of them imports of its framework; the others import nothing of theirs. */
const ADAPTERS = [
  ["sallyport/ai", "ai"],
  ["sallyport/openai-agents", ""],
  ["sallyport/langchain", ""],
  ["sallyport/mastra", ""],
  ["sallyport/claude-agent", "zod"],
] as const;

test.each(ADAPTERS)(
  "importing %s loads few files beyond its framework",
  async (adapter, framework) => {
    const child = path.join(import.meta.dirname, "import-child.ts");
    const flags = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];
    const args = [...flags, child, adapter, framework];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    const files: readonly string[] = JSON.parse(stdout);
    expect(files.filter((file) => !file.includes("/src/"))).toEqual([]);
    expect(files.length, "void: nothing was counted").toBeGreaterThan(3);
    expect(files.length, files.join("\n")).toBeLessThanOrEqual(MOST_FILES);
  },
);
