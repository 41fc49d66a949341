// How many files a reader has to open to follow one call. The limits only ever go down: a change that needs another file
// on the way of a call has to give one back.

import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

/** Most files of src, `util` left out because it has no word of the product, and most folders. */
const LIBRARY = { files: 45, folders: 8 };
const HTTP = { files: 59 };

test("walk: a refund that a person approves is followed through no more files than before", async () => {
  const child = path.join(import.meta.dirname, "refund.ts");
  const flags = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, child]);
  const walked: { library: string[]; http: string[] } = JSON.parse(stdout);
  const library = walked.library.filter((file) => !file.startsWith("util/"));
  const both = new Set([...library, ...walked.http.filter((file) => !file.startsWith("util/"))]);
  expect(library, "void: the story did not run").toContain("gate/propose.ts");
  expect(library.length, library.join("\n")).toBeLessThanOrEqual(LIBRARY.files);
  const folders = new Set(library.map((file) => path.dirname(file)));
  expect(folders.size, [...folders].join(" ")).toBeLessThanOrEqual(LIBRARY.folders);
  expect(both.size, [...both].join("\n")).toBeLessThanOrEqual(HTTP.files);
});
