interface HasDirectory {
  readonly workingDirectory: string;
}

/**
 * The same context with another working directory; the very same one when the directory is empty. Contexts are never
 * changed, so an inner override ends with the call it was made for and parallel calls do not see each other's.
 */
export function withWorkingDirectory<Context extends HasDirectory>(
  context: Context,
  directory: string,
): Context {
  return directory === "" ? context : { ...context, workingDirectory: directory };
}

/** Empty when none is set. */
export function workingDirectoryOf(context: Partial<HasDirectory>): string {
  return context.workingDirectory ?? "";
}

/** For tools that have a directory of their own: the context's when it has one. */
export function directoryFor(context: Partial<HasDirectory>, own: string): string {
  return workingDirectoryOf(context) || own;
}
