import { closeSync, existsSync, fsyncSync, openSync, readSync, writeSync } from "node:fs";

/** A file of lines that are on disk before `write` comes back: what a process did is known also when it is killed. */
export interface LinesWriter<Line> {
  write(line: Line): void;
  close(): void;
}

export function appendLines<Line>(file: string): LinesWriter<Line> {
  const handle = openSync(file, "a");
  return {
    write(line) {
      writeSync(handle, `${JSON.stringify(line)}\n`);
      fsyncSync(handle);
    },
    close: () => closeSync(handle),
  };
}

/** Everything that is in the file by now; what was read before is not read again. */
export interface LinesReader<Line> {
  read(): readonly Line[];
}

const CHUNK = 64 * 1024;

/** The last line of a killed process may be half a line: it was not synced, so nobody relies on it. */
export function followLines<Line>(file: string): LinesReader<Line> {
  const lines: Line[] = [];
  let offset = 0;
  return {
    read() {
      if (!existsSync(file)) return lines;
      const handle = openSync(file, "r");
      try {
        const parts: Buffer[] = [];
        for (let at = offset; ; ) {
          const chunk = Buffer.alloc(CHUNK);
          const length = readSync(handle, chunk, 0, CHUNK, at);
          if (length === 0) break;
          parts.push(chunk.subarray(0, length));
          at += length;
        }
        const bytes = Buffer.concat(parts);
        const end = bytes.lastIndexOf(0x0a) + 1;
        const whole = bytes.subarray(0, end).toString("utf8").split("\n").filter(Boolean);
        offset += end;
        lines.push(...whole.map((line) => JSON.parse(line) as Line));
        return lines;
      } finally {
        closeSync(handle);
      }
    },
  };
}
