import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** Runs a part of the story in a child process and kills it after it has printed its handover. */
export async function runUntilKilled(
  file: URL,
  args: readonly string[],
): Promise<readonly { readonly id: string; readonly token: string }[]> {
  const flags = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];
  const child = spawn(process.execPath, [...flags, fileURLToPath(file), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  for await (const line of createInterface(child.stdout)) {
    if (!line.startsWith("handed ")) {
      console.log(line);
      continue;
    }
    child.kill("SIGKILL");
    await exited;
    return JSON.parse(line.slice("handed ".length));
  }
  throw new Error(`${file.pathname} ended before it was killed`);
}
