import { isSallyportError, SallyportError } from "../model/errors.ts";

/**
 * For work that follows a write of its own: an error of the store that says "nothing was written" is true of one write only,
 * and whoever believed it would repeat the whole. It becomes one that names the record that is there already. It has no
 * cause, because errors are recognised through their causes, and this one is not safe to repeat.
 */
export async function pastFirstWrite<Result>(
  id: string,
  hint: string,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SallyportError) || !isStoreFailure(error)) throw error;
    const said = error.details.hint ?? error.message;
    throw new SallyportError("partly_written", {
      id,
      failed: error.code,
      hint: `${hint} The store said: ${said}`,
    });
  }
}

function isStoreFailure(error: SallyportError): boolean {
  return error.retry === "safe" || isSallyportError(error, "commit_unknown");
}
