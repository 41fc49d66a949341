import type { Result } from "./report.ts";
export async function* verifyBenches(_wanted: (name: string) => boolean): AsyncGenerator<Result> {}
