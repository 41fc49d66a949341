/**
 * Variables that change how output looks and nothing else. Every other one may choose a program, a library, a
 * configuration or a target for what follows (PATH, LD_PRELOAD, GIT_SSH_COMMAND, NODE_OPTIONS, KUBECONFIG …), and new
 * ones are invented daily, so the list names the harmless ones.
 */
const HARMLESS: ReadonlySet<string> = new Set([
  "CI",
  "CLICOLOR",
  "COLUMNS",
  "FORCE_COLOR",
  "LANG",
  "LINES",
  "NO_COLOR",
  "TERM",
  "TZ",
]);

export function isHarmlessVariable(name: string): boolean {
  return HARMLESS.has(name) || /^LC_[A-Z]+$/.test(name);
}
