import { DANGEROUS_PATHS, type DangerousPath, dangersOf } from "../dangerous-paths.ts";
import type { DangerousCommand, Place } from "./dangerous-commands.ts";
import { behindRoot, resolveIn } from "./folder.ts";
import type { ShellPart, ShellRedirect } from "./shell-script.ts";
import { programName, type Token } from "./token.ts";
import { accessOf } from "./word-access.ts";

export interface Danger {
  readonly id: string;
  readonly answer: "deny" | "ask";
  readonly reason: string;
}

/** The dangers of one program with its words. */
export function dangersOfPart(
  part: ShellPart,
  commands: readonly DangerousCommand[],
  paths: readonly DangerousPath[] = DANGEROUS_PATHS,
): readonly Danger[] {
  const program = programName(part.words[0]);
  const rest = part.words.slice(1);
  const known = commands.filter((danger) => isDanger(danger, program, rest, part.folder));
  const touched = rest.flatMap((_, index) =>
    pathsIn(rest[index]?.text ?? "", accessOf(program, rest, index), part.folder, paths),
  );
  return [...known, ...touched];
}

/** The dangers of a file that the shell opens by itself. */
export function dangersOfRedirect(
  { target, access, folder }: ShellRedirect,
  paths: readonly DangerousPath[] = DANGEROUS_PATHS,
): readonly Danger[] {
  return pathsIn(target.text, access, folder, paths);
}

function isDanger(
  danger: DangerousCommand,
  program: string,
  rest: readonly Token[],
  folder: string | undefined,
): boolean {
  const { programs, words = [], options = [], operands, last, place } = danger;
  if (!programs.some((name) => fits(name, program))) return false;
  if (!options.every((group) => group.some((option) => hasOption(rest, option)))) return false;
  const texts = rest.map(({ text }) => text);
  if (!isInOrder(words, texts)) return false;
  if (
    operands !== undefined &&
    !texts.some((text) => operands.some((one) => isOperand(text, one)))
  ) {
    return false;
  }
  if (last !== undefined && !last.includes(texts.at(-1) ?? "")) return false;
  return place === undefined || texts.some((text) => isAt(text, place, folder));
}

/** A whole word, or the beginning of one where the entry ends in a sign or is a single digit (`4755`, `+main`). */
function isOperand(text: string, one: string): boolean {
  if (/^\d$/.test(one)) return text === one || (/^\d{4}$/.test(text) && text.startsWith(one));
  return /^\W|\W$/.test(one) ? text.startsWith(one) : text === one;
}

function isInOrder(words: readonly string[], texts: readonly string[]): boolean {
  let next = 0;
  for (const text of texts) if (text === words[next]) next += 1;
  return next === words.length;
}

function hasOption(rest: readonly Token[], option: string): boolean {
  return rest.some(({ text }) => {
    const given = text.split("=", 1)[0] ?? "";
    if (given === option) return true;
    if (option.startsWith("--")) return given.length > 2 && option.startsWith(given);
    const isCluster = option.length === 2 && /^-[A-Za-z]+$/.test(text) && !text.startsWith("--");
    return isCluster && text.includes(option.slice(1));
  });
}

function isAt(text: string, place: Place, folder: string | undefined): boolean {
  const path = behindRoot(resolveIn(folder, pathOf(text)));
  return place === "null-device" ? path === "/dev/null" : isRoot(path);
}

/** The root, a home, the folder all homes are in, the system's own folders; also with everything in them (`/*`). */
function isRoot(path: string): boolean {
  const bare = path.replace(/\/[.*]+$/, "") || "/";
  // biome-ignore format: a list of folders
  const isSystem = /^\/(bin|boot|dev|etc|home|lib\d*|opt|proc|root|sbin|srv|sys|usr|var|mnt|media|Users|System|Library|Applications|private)$/i;
  return (
    bare === "/" || bare === "~" || isSystem.test(bare) || /^\/(home|Users)\/[^/]+$/.test(bare)
  );
}

function pathsIn(
  text: string,
  access: "read" | "write",
  folder: string | undefined,
  paths: readonly DangerousPath[],
): readonly Danger[] {
  const path = resolveIn(folder, pathOf(text));
  const dangersAt = (at: string) => dangersOf(at.split("/"), access, paths);
  const other = behindRoot(path);
  const above = pathAbove(folder, pathOf(text));
  return [
    ...dangersAt(path),
    ...(other === path ? [] : dangersAt(other)),
    ...(above === undefined ? [] : dangersAt(above).map(unsure)),
  ];
}

/** What `../../etc/shadow` names if it leads to the root; nobody here knows how deep the first folder lies. */
function pathAbove(folder: string | undefined, path: string): string | undefined {
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  if (folder !== undefined || path.startsWith("/") || names[0] !== "..") return undefined;
  return resolveIn(undefined, `/${names.join("/")}`);
}

function unsure({ id, reason }: Danger): Danger {
  return { id, answer: "ask", reason: `${reason}, if its path leads that far up` };
}

/** The path in `of=/dev/sda`, `--output=/etc/x`, `-o/etc/x` and `@/etc/shadow`. */
function pathOf(text: string): string {
  return text.replace(/^[^/=~]*=|^-[A-Za-z]+(?=[/~])|^@/, "");
}

function fits(name: string, program: string): boolean {
  return name.endsWith("*") ? program.startsWith(name.slice(0, -1)) : name === program;
}
