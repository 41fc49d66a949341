export {
  type AnchorSink,
  createSigner,
  fileAnchorSink,
  generateSigningKey,
} from "./anchor.ts";
export { createAnchorer } from "./anchorer.ts";
export { type CheckedProof, checkProof, type InclusionProof, proveEntry } from "./proof.ts";
export { createRedactor, type Redactor } from "./redact.ts";
export { exportStore, exportTrail, followTrail, readExport, sessionStory } from "./trail.ts";
export { type VerifyOptions, verifyTrail } from "./verify.ts";
