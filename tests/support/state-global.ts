import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

/** No test writes into the state folder of the user who runs it: all of them get one that is removed at the end. */
export function setup(): () => void {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-state-"));
  process.env["SALLYPORT_STATE"] = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}
