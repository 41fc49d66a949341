/** Records a check that was made. */
export const VERIFY_RESULT = "verify.result";
/** Makes the check that the promise names, and records it. */
export const VERIFY_COMMAND = "verify.command";

/** The only tools through which evidence comes into a run. */
export const VERIFY_TOOLS: readonly string[] = [VERIFY_RESULT, VERIFY_COMMAND];
