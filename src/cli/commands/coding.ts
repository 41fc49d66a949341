import { existsSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Argument, Command, Option } from "commander";
import { PROGRAMS, runCanary } from "../../coding-agents/canary.ts";
import { trustCodexHooks } from "../../coding-agents/codex.ts";
import { offSwitches } from "../../coding-agents/doctor.ts";
import { HOST_NAMES, type HostName } from "../../coding-agents/hosts.ts";
import {
  type InstallPlace,
  type InstallScope,
  install,
  installations,
  SCOPES,
  uninstall,
} from "../../coding-agents/install.ts";
import { SallyportError } from "../../model/errors.ts";
import { definedFields } from "../../util/defined-fields.ts";
import { withFlags } from "../open-store.ts";
import { print } from "../render.ts";

interface InstallFlags {
  readonly data: string;
  readonly json?: boolean;
  readonly scope: InstallScope;
  readonly wait?: string;
  readonly program?: string;
  /** Commander turns `--no-canary` into this. */
  readonly canary: boolean;
}

const host = () => new Argument("<host>", "the coding agent").choices([...HOST_NAMES]);
const scope = () =>
  new Option("--scope <scope>", "whose settings: only managed ones cannot be switched off")
    .choices([...SCOPES])
    .default("user");

/** For `help` and `completion`: bin.ts starts the hook without loading any of this. */
export function hookCommand(): Command {
  return new Command("hook")
    .description("Answer a coding agent that asks about a tool call. Coding agents start it.")
    .addArgument(host())
    .option("--wait <seconds>", "how long to wait for a person")
    .action(async (name: string) => {
      const { runHook } = await import("../../coding-agents/hook.ts");
      await runHook([name]);
    });
}

export function installCommand(): Command {
  return new Command("install")
    .description("Put Sallyport in front of every tool call of a coding agent, and prove it.")
    .addArgument(host())
    .addOption(scope())
    .option("--wait <seconds>", "how long a call waits for a person before it is refused")
    .option("--program <file>", "the coding agent's program; its name on the PATH by default")
    .option("--no-canary", "do not run the coding agent once to prove that the hook works")
    .action(withFlags<InstallFlags>((flags, name) => installHost(flags, name as HostName)));
}

export function uninstallCommand(): Command {
  return new Command("uninstall")
    .description("Restore the settings of a coding agent as they were before install.")
    .addArgument(host())
    .addOption(scope())
    .action(
      withFlags<InstallFlags>((flags, name) => {
        const files = uninstall(placeOf(flags, name as HostName));
        print({ restored: files }, flags, [...files.map((file) => `Restored ${file}`)]);
      }),
    );
}

/** The built file, or the source in a checkout. */
const OWN_PROGRAM = fileURLToPath(
  new URL(`../bin${path.extname(import.meta.filename)}`, import.meta.url),
);

function placeOf(
  flags: Pick<InstallFlags, "data" | "scope" | "wait">,
  name: HostName,
  project = process.cwd(),
): InstallPlace {
  const { CODEX_HOME: codexHome } = process.env;
  const wait = flags.wait === undefined ? undefined : Number(flags.wait);
  if (wait !== undefined && !(wait >= 0 && wait <= 3_600)) {
    const hint = "Give a number of seconds up to 3600.";
    throw new SallyportError("invalid_input", { what: "--wait", hint });
  }
  return {
    host: name,
    scope: flags.scope,
    home: homedir(),
    project,
    data: path.resolve(flags.data),
    program: [process.execPath, ...process.execArgv, OWN_PROGRAM],
    ...definedFields({ wait, codexHome }),
  };
}

async function installHost(flags: InstallFlags, name: HostName): Promise<void> {
  const place = placeOf(flags, name);
  const program = flags.program ?? PROGRAMS[name];
  const files = install(place, definedFields({ hostProgram: flags.program }));
  const done = files.map((file) => `Wrote ${file}`);
  try {
    if (name === "codex" && place.scope !== "managed") {
      await trustCodexHooks(place, { program, env: process.env });
      done.push("Codex trusts the hook.");
    }
    const result = flags.canary
      ? await canaryOf(place, program)
      : { ok: true, text: "not proved: --no-canary" };
    if (!result.ok) throw new Error([result.text, ...(await offSwitches(place))].join(". "));
    print({ files, canary: result }, flags, [...done, `Canary: ${result.text}.`, ...NEXT]);
  } catch (error) {
    // A hook that is not proved to work is worse than none: people would rely on it.
    uninstall(place);
    const hint = `The settings were restored: ${error instanceof Error ? error.message : error}.`;
    throw new SallyportError("not_allowed", { what: name, hint }, error);
  }
}

const NEXT = [
  "While no server runs, every tool call is refused: sallyport serve --config sallyport.config.ts",
];

/** The settings of a project hold only inside it. */
function canaryOf({ host: name, scope: of, project }: InstallPlace, program: string) {
  const where = of === "project" ? { project } : {};
  return runCanary({ host: name, program: [program], env: process.env, ...where });
}

/** For `doctor`: every installation from this data folder, what switches it off, and the canary again. */
export async function hostFindings(data: string) {
  const findings: { readonly what: string; readonly ok: boolean; readonly text: string }[] = [];
  for (const found of installations(data)) {
    const { host: name, scope: of, project, hostProgram: program = PROGRAMS[name] } = found;
    const wait = found.wait === undefined ? undefined : String(found.wait);
    const place = placeOf({ data, scope: of, ...definedFields({ wait }) }, name, project);
    const codex = { program, env: process.env };
    const off = await offSwitches(place, name === "codex" ? codex : undefined).catch(
      (error: Error) => [error.message],
    );
    const what = of === "project" ? `${name} (${of} ${project})` : `${name} (${of})`;
    if (off.length > 0) findings.push({ what, ok: false, text: off.join("; ") });
    const { ok, text } = existsSync(project)
      ? await canaryOf(place, program)
      : { ok: false, text: `${project} is gone` };
    findings.push({ what: `${what} canary`, ok, text });
  }
  return findings;
}
