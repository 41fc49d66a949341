// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the braces belong to the shell
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import type { CallAnswer } from "../../src/model/operation.ts";
import type { Rule } from "../../src/policy/policy.ts";
import { fileTools, shellRun } from "../../src/tools/index.ts";
import { AGENT, openGate } from "../support/port-world.ts";

let folder = "";
beforeAll(() => {
  folder = realpathSync(mkdtempSync(path.join(tmpdir(), "sallyport-gate-")));
});
afterEach(() => {
  for (const name of readdirSync(folder)) rmSync(path.join(folder, name), { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What an operator might allow and refuse; `**` allows as much as a rule can. */
const rules = (): readonly Rule[] => [
  ...["ls", "cat", "cd", "echo", "test", "[", "printf", "wait", "kill", "shift"].map(
    (name): Rule => ({
      id: `allow-${name}`,
      effect: "allow",
      tool: "shell.run",
      class: "bash",
      command: [name, "**"],
      folder,
      options: ["-n", "-p", "-v", "-eq", "-R", "-P"],
      reason: "Part of the daily work.",
    }),
  ),
  {
    id: "deny-touch",
    effect: "deny",
    tool: "shell.run",
    class: "bash",
    command: ["touch"],
    reason: "Nothing is made here.",
  },
];

async function run(
  command: string,
  shell: string | undefined,
  environment: Readonly<Record<string, string>> = {},
): Promise<CallAnswer["answer"]> {
  const tool = shellRun({
    directory: folder,
    environment,
    ...(shell === undefined ? {} : { shell }),
  });
  const { gate } = openGate({ tools: [tool], policy: { version: "1", rules: rules() } });
  const session = gate.sessions.open({ agent: AGENT, workingDirectory: folder });
  const { answer } = await session.call({ callId: "c", tool: "shell.run", input: { command } });
  return answer;
}

/** Each makes the file `made` when bash reads it, though only `ls` and words of the shell stand in it. */
const EVALUATED_TWICE = [
  'LINES="a[\\$(touch made)]"; TZ=$((LINES)); ls',
  'LINES="a[\\$(touch made)]"; TZ=$[LINES]; ls',
  'LANG="\\$(touch made)"; TZ=${LANG@P}; ls',
  'LANG="a[\\$(touch made)]"; TZ=${!LANG}; ls',
  'LINES="a[\\$(touch made)]"; TZ=${LANG:LINES}; ls',
  'LINES="a[\\$(touch made)]"; LANG=C; TZ=${LANG:0:LINES}; ls',
  'LINES="a[\\$(touch made)]"; TZ=${LANG[LINES]}; ls',
  'LINES="a[\\$(touch made)]"; LANG[LINES]=C; ls',
  'LINES="a[\\$(touch made)]"; LANG=([LINES]=C); ls',
  'LINES="a[\\$(touch made)]"; TZ=${LANG:=$((LINES))}; ls',
  'ls & wait -n -p "a[\\$(touch made)]"; ls',
  'ls & command wait -n -p "a[\\$(touch made)]"; ls',
  'for LINES in "a[\\$(touch made)]"; do case $((LINES)) in *) ls;; esac; done',
  'LINES="a[\\$(touch made)]"; ls <<< $((LINES))',
  'LINES="a[\\$(touch made)]"; if [[ -n $((LINES)) ]]; then ls; fi',
  'LINES="a[\\$(touch made)]"; [[ $LINES -eq 0 ]] || ls',
  'LINES="a[\\$(touch made)]"; [[ -v $LINES ]] || ls',
  'LINES="a[\\$(touch made)]"; ls <<E\n$((LINES))\nE\n',
  'LINES="a[\\$(touch made)]"; ls > $((LINES))',
  'printf -v "a[\\$(touch made)]" x; ls',
  'test -v "a[\\$(touch made)]"; ls',
  '[ -v "a[\\$(touch made)]" ]; ls',
  'test -n x -a -v "a[\\$(touch made)]"; ls',
];

test.for([
  ["/bin/sh", undefined],
  ["bash", "/bin/bash"],
] as const)(
  "shell gate: what bash evaluates a second time never runs without a person, commands run by %s [C1]",
  { timeout: 300_000 },
  async ([, shell], context) => {
    const hasBash = existsSync("/bin/bash");
    context.skip(!hasBash, "bash is not installed");
    expect(await run("touch made", shell)).toBe("denied");
    expect(await run("ls", shell)).toBe("done");
    const handedOver = [
      `LINES='a[$(touch made)]' bash -c 'TZ=$((LINES)); ls'`,
      `env LINES='a[$(touch made)]' bash -c 'TZ=$((LINES)); ls'`,
    ];
    const scripts = EVALUATED_TWICE.flatMap((script) => [script, `bash -c '${script}'`]);
    for (const command of [...scripts, ...handedOver]) {
      const answer = await run(command, shell);
      expect(existsSync(path.join(folder, "made")), `${command} made the file`).toBe(false);
      expect(answer, command).not.toBe("done");
    }
  },
);

test("shell gate: a redirection that two shells read differently is never allowed [C1]", async () => {
  for (const command of [
    "ls &>/dev/null touch made",
    "ls &>>/dev/null touch made",
    "ls; &>/dev/null touch made",
    ">&-touch made ls",
    "ls 2>&1-touch",
    "ls 22>&1",
    "ls 10>/dev/null",
  ]) {
    for (const shell of [undefined, "/bin/bash"]) {
      expect(await run(command, shell), command).not.toBe("done");
      expect(existsSync(path.join(folder, "made")), `${command} made the file`).toBe(false);
    }
  }
  expect(await run("ls >/dev/null 2>&1", undefined)).toBe("done");
});

test("shell gate: values in front of a command are plain words, or a person is asked [C1]", async () => {
  for (const value of ["C", "en_US.UTF-8", "'C'", '"de_DE.utf8@euro"', ""]) {
    expect(await run(`LANG=${value} ls`, undefined), value).toBe("done");
    expect(await run(`env LANG=${value} ls`, undefined), value).toBe("done");
  }
  for (const value of [
    "'a[0]'",
    "'$(x)'",
    "'a b'",
    "a\\$b",
    "$HOME",
    "~",
    "'`x`'",
    "(C)",
    "'1+1'\\;",
  ]) {
    for (const command of [`LANG=${value} ls`, `LANG=${value}; ls`, `env LANG=${value} ls`]) {
      expect(await run(command, undefined), command).not.toBe("done");
    }
  }
  for (const name of ["PS4", "BASH_ENV", "ENV", "PROMPT_COMMAND", "IFS", "PATH", "LC_X", "X"]) {
    expect(await run(`${name}=C ls`, undefined), name).toBe("pending");
    expect(await run(`env ${name}=C ls`, undefined), name).toBe("pending");
  }
});

/** One string for a reader of UTF-8; where `\xa0\\` is one letter, the string ends before `touch`. */
const TWO_READINGS = String.raw`echo "你\" ; touch made; echo " # "`;

test("shell gate: only locales in UTF-8 are set, others change what the same bytes mean [C1]", {
  timeout: 300_000,
}, async () => {
  // biome-ignore format: a list
  const foreign = [
    "zh_CN.GBK", "zh_CN.gb18030", "zh_TW", "zh_TW.BIG5", "ja_JP.SJIS", "ko_KR.eucKR", "de_DE", "de_DE@euro", "GBK",
    "/work/locale", "../locale", "UTF-8", "zh_CN.GBK.UTF-8x", "zh_CN.UTF-8/../zh_CN.GBK",
  ];
  const names = ["LC_ALL", "LANG", "LC_CTYPE", "LC_MESSAGES"];
  for (const [index, locale] of foreign.entries()) {
    const set = `${names[index % names.length]}=${locale}`;
    const forms = [
      `${set} bash -c '${TWO_READINGS}'`,
      `env ${set} bash -c '${TWO_READINGS}'`,
      `${set};\n${TWO_READINGS}`,
    ];
    const command = forms[index % forms.length] ?? "";
    expect(await run(command, "/bin/bash"), command).toBe("pending");
  }
  for (const value of ["/work/zone", ":/etc/localtime", "../zone", "a/../zone"]) {
    expect(await run(`TZ=${value} ls`, undefined), value).toBe("pending");
  }
  for (const value of ["UTC", "Europe/Berlin", "America/Indiana/Knox", "Etc/GMT+3", ""]) {
    expect(await run(`TZ=${value} ls`, undefined), value).toBe("done");
  }
});

test("shell gate: an option of time hides no program from the gate, whichever shell runs it [C1]", {
  timeout: 300_000,
}, async () => {
  for (const option of ["-v", "-p''", "'-p'", "-o made", "-p -v"]) {
    expect(await run(`time ${option} ls`, undefined), option).toBe("pending");
  }
  expect(await run("time -p ls", undefined)).toBe("done");
});

test("shell gate: bash takes a command apart as the gate did, whatever locale the server has [C1]", {
  timeout: 300_000,
}, async (context) => {
  const locales = mkdtempSync(path.join(tmpdir(), "sallyport-locale-"));
  const made = spawnSync("localedef", ["-c", "-f", "GBK", "-i", "zh_CN", path.join(locales, "zh")]);
  const hasGbk = made.error === undefined && existsSync(path.join(locales, "zh", "LC_CTYPE"));
  // skip: where bash or the sources of locales are missing
  context.skip(!hasGbk || !existsSync("/bin/bash"), "bash or the sources of locales are missing");
  try {
    const environment = { LOCPATH: locales, LC_ALL: "zh" };
    const started = { cwd: folder, env: { ...process.env, ...environment } };
    spawnSync("/bin/bash", ["-c", TWO_READINGS], started);
    expect(existsSync(path.join(folder, "made")), "bash reads it in two ways").toBe(true);
    rmSync(path.join(folder, "made"));
    expect(await run(TWO_READINGS, "/bin/bash", environment)).toBe("done");
    expect(existsSync(path.join(folder, "made")), "the gate and bash agree").toBe(false);
  } finally {
    rmSync(locales, { recursive: true });
  }
});

test("shell gate: what stands behind the dash that ends a shell's options is not taken for its text [C1]", async () => {
  for (const command of ["bash -c - 'touch made'", "sh -c - ls", "bash - -c ls"]) {
    expect(await run(command, undefined), command).toBe("pending");
  }
  expect(existsSync(path.join(folder, "made"))).toBe(false);
});

test("shell gate: no rule lets a word through that leads back to the root of the machine [M10]", async () => {
  for (const command of [
    "cat /proc/self/root/etc/hostname",
    "cat //proc//self/./root/etc/hostname",
    "cat '/proc/self'/root/etc/hostname",
    "cat /proc/1/root/etc/hostname",
    "cat /proc/thread-self/root/etc/hostname",
    "cat /proc/self/task/1/root/etc/hostname",
    "cat /proc/self/cwd/../../etc/hostname",
    "cat /proc/self/fd/0",
    "cat /proc/net/../root/etc/hostname",
    "cat /proc/sys/../self/cwd/../../etc/hostname",
    "cat /dev/fd/../root/etc/hostname",
    "cat /dev/fd/0",
    "cat /dev/stdin/../../root/etc/hostname",
    "cat /tmp/../proc/self/root/etc/hostname",
    "cat ../../../../../../proc/self/root/etc/hostname",
    "cat --file=/proc/self/root/etc/hostname",
    "cd /proc/self; cat root/etc/hostname",
    "cd /proc; cat self/root/etc/hostname",
    "cd /; cat proc/self/root/etc/hostname",
    "cd /proc/net; cat ../root/etc/hostname",
    "cd /dev; cat fd/../root/etc/hostname",
    "cat proc/self/root/etc/hostname",
    "test -f /proc/self/root/etc/hostname && ls",
    "cat /var/run/../etc/hostname",
    "cd /var/run; cat ../etc/hostname",
  ]) {
    expect(await run(command, undefined), command).toBe("pending");
  }
  for (const command of [
    "cat /etc/shadow",
    "cat /proc/self/root/etc/shadow",
    "cat /proc/self/root/proc/self/environ",
    "cat /proc/1/root//proc/1/root/etc/shadow",
    "cat /proc/self/task/1/root/etc/shadow",
    "cat < /proc/self/root/etc/shadow",
    "cd /proc/self/root/etc; cat shadow",
  ]) {
    expect(await run(command, undefined), command).toBe("denied");
  }
  expect(await run("cat ../../../../../../../../etc/shadow", undefined)).toBe("pending");
  for (const command of ["cat /proc/loadavg", "ls .", "ls ..", "cat /proc/cpuinfo | cat"]) {
    expect(await run(command, undefined), command).toBe("done");
  }
});

test("shell gate: after a change of folder that can fail or leads elsewhere, no rule decides [M10]", async () => {
  for (const command of [
    "cd /etc; cd /nowhere; cat shadow",
    "cd /etc; env cd /tmp; cat shadow",
    "cd /etc; true || cd /tmp; cat shadow",
    "cd /etc; cd /tmp; cd -; cat shadow",
    "cd -P /proc; ls",
    "cd -; ls",
    "cd /tmp /etc; ls",
  ]) {
    expect(await run(command, undefined), command).toBe("pending");
  }
  expect(await run("cd /etc; cat shadow", undefined)).toBe("denied");
  // A rule is for its folder, so what runs elsewhere is asked about, too.
  for (const command of ["cd / && ls", "cd .. && ls", "(cd /tmp; ls); (cd /etc; ls)"]) {
    expect(await run(command, undefined), command).toBe("pending");
  }
});

test("shell gate: a word that goes through a link is judged by where it leads [M10] [H2]", async () => {
  const outside = realpathSync(mkdtempSync(path.join(tmpdir(), "sallyport-outside-")));
  onTestFinished(() => rmSync(outside, { recursive: true, force: true }));
  for (const name of ["keys", "plain", ".ssh"]) mkdirSync(path.join(outside, name));
  for (const name of ["keys/token", "plain/note", ".ssh/id_rsa", ".profile"]) {
    writeFileSync(path.join(outside, name), "SECRET");
  }
  mkdirSync(path.join(folder, "sub"));
  writeFileSync(path.join(folder, "sub/own"), "own");
  const links = {
    keys: path.join(outside, "keys"),
    "to ken": path.join(outside, "keys/token"),
    "sub/out": path.join(outside, "plain"),
    ssh: path.join(outside, ".ssh"),
    "one-link": "sub/out",
    "own-link": "sub/own",
    home: path.join(outside, ".profile"),
  };
  for (const [name, target] of Object.entries(links)) symlinkSync(target, path.join(folder, name));
  symlinkSync(path.join(outside, "keys"), path.join(outside, "way"));
  const { gate } = openGate({
    tools: [shellRun({ directory: folder })],
    policy: { version: "1", rules: rules() },
    protectedPaths: [path.join(outside, "keys")],
  });
  const session = gate.sessions.open({ agent: AGENT, workingDirectory: folder });
  const expected: Readonly<Record<string, string>> = {
    "cat keys/token": "denied",
    'cat "to ken"': "denied",
    "cat to\\ ken": "denied",
    "sh -c 'cat keys/token'": "denied",
    "cat < keys/token": "denied",
    [`cat ${folder}/keys/token`]: "denied",
    [`cat ${outside}/way/token`]: "denied",
    "cat ssh/id_rsa": "denied",
    "cat sub/out/note": "pending",
    "cat one-link/note": "pending",
    "cat home": "pending",
    "cat own-link": "done",
    "cat sub/own": "done",
    "cat nowhere/else": "failed",
  };
  for (const [command, answer] of Object.entries(expected)) {
    const said = await session.call({ callId: command, tool: "shell.run", input: { command } });
    expect([command, said.answer]).toEqual([command, answer]);
    expect(said.text).not.toContain("SECRET");
  }
});

test("file tools judge where /proc and /dev/fd lead, not their letters [M10]", async () => {
  const { gate } = openGate({
    tools: fileTools(),
    policy: { version: "1", rules: [] },
    fileRoots: [
      { path: "/proc", access: "read" },
      { path: folder, access: "read" },
    ],
  });
  const session = gate.sessions.open({ agent: AGENT, workingDirectory: folder });
  const read = async (file: string) => {
    const callId = `c-${file}`;
    const { answer } = await session.call({ callId, tool: "files.read", input: { path: file } });
    return answer;
  };
  for (const file of [
    "/etc/shadow",
    "/proc/self/root/etc/shadow",
    "/proc/thread-self/root/etc/shadow",
    "/proc/self/root/proc/self/root/etc/shadow",
    "/dev/fd/../root/etc/shadow",
    "/proc/self/environ",
    "/proc/self/root/proc/self/environ",
    "/proc/net/../root/etc/shadow",
  ]) {
    expect(await read(file), file).toBe("denied");
  }
  expect(await read("/proc/self/root/etc/hostname")).toBe("pending");
});
