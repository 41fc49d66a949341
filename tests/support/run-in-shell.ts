// Runs many commands in a real shell where all programs are stubs that write down how they were called.

import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { OTHER_STUBS, quoted, STUBS } from "./shell-grammar.ts";

const TOOLS = ["env", "timeout", "nice", "nohup", "stdbuf", "find", "sh", "bash"];
const PLACES = ["/usr/bin", "/bin"];

export interface ShellRoom {
  /** For each command how the stubs were called, as their words with a separator after each. */
  run(shell: string, commands: readonly string[]): readonly (readonly string[])[];
  close(): void;
}

export function findShell(name: string): string | undefined {
  return PLACES.map((place) => path.join(place, name)).find(existsSync);
}

export function openShellRoom(): ShellRoom {
  const room = mkdtempSync(path.join(tmpdir(), "sallyport-shells-"));
  const bin = path.join(room, "bin");
  const work = path.join(room, "work");
  mkdirSync(bin);
  mkdirSync(work);
  const stub = (name: string, end: string) => {
    const file = path.join(bin, name);
    const words = name === "time" ? "" : ' "$@"';
    writeFileSync(
      file,
      `#!/bin/sh\nprintf '%s\\036' "$NUMBER" '${name}'${words} END >> "$LOG"\n${end}\n`,
    );
    chmodSync(file, 0o755);
  };
  for (const name of [...STUBS, ...OTHER_STUBS]) stub(name, name === "bb" ? "exit 1" : "exit 0");
  // For dash `time` is a program, which runs its words.
  stub("time", '[ "$1" = -p ] && shift; exec "$@"');
  for (const tool of TOOLS) {
    const real = findShell(tool);
    if (real !== undefined) symlinkSync(real, path.join(bin, tool));
  }
  // A locale in GBK named zh, where locales can be made.
  spawnSync("localedef", ["-c", "-f", "GBK", "-i", "zh_CN", path.join(room, "zh")]);
  let batches = 0;
  return {
    run(shell, commands) {
      batches += 1;
      // The shells are real and can have all rights; nothing may end processes that are not theirs.
      if (commands.some((command) => /kill|suspend/.test(command))) throw new Error("not run here");
      const log = path.join(room, `log-${batches}`);
      const driver = path.join(room, `driver-${batches}`);
      const lines = commands.map(
        (command, number) =>
          `NUMBER=${number} ${shell} -c ${quoted(command)} </dev/null >/dev/null 2>&1\n`,
      );
      writeFileSync(driver, `ulimit -t 2\n${lines.join("")}`);
      writeFileSync(log, "");
      // Everything that is started holds the last pipe, so this returns when the last of it has ended.
      const { error, signal } = spawnSync("/bin/sh", [driver], {
        cwd: work,
        env: { PATH: bin, LANG: "C.UTF-8", LOCPATH: room, LOG: log },
        stdio: ["ignore", "ignore", "ignore", "pipe"],
        // Seconds on an idle machine; whatever computes without end is ended by its limit of time above.
        timeout: 900_000,
      });
      if (error !== undefined || signal !== null) {
        throw new Error(`the shell did not end: ${error?.message ?? signal}`);
      }
      const calls: string[][] = commands.map(() => []);
      for (const call of readFileSync(log, "utf8").split("END\x1e")) {
        const end = call.indexOf("\x1e");
        if (end > 0) calls[Number(call.slice(0, end))]?.push(call.slice(end + 1));
      }
      rmSync(log);
      rmSync(driver);
      return calls;
    },
    close: () => rmSync(room, { recursive: true, force: true }),
  };
}
