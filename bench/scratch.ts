import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";

/** A folder of one's own that is gone afterwards. */
export async function scratch(): Promise<{ dir: string } & AsyncDisposable> {
  const dir = await mkdtemp(path.join(tmpdir(), "sallyport-bench-"));
  return { dir, [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }) };
}
