// What `sallyport serve` and `sallyport worker` are started with; the test says where production is.
import { partsFor } from "../faults/production/parts.ts";

/** Short, so that what a killed process had begun is soon free for another. */
const LEASE_MS = 1_500;

export default partsFor(Number(process.env["PRODUCTION_PORT"]), LEASE_MS);
