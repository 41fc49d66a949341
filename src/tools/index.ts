export { auditOperationOf, guessOperation } from "./audit-operation.ts";
export { type Capability, capabilityOf, NO_CAPABILITY, type SafetyLevel } from "./capability.ts";
export {
  createDeferredRegistry,
  type DeferredRegistry,
  registerDeferredTool,
} from "./deferred-registry.ts";
export { defineTool } from "./define-tool.ts";
export { type DefinitionChange, definitionDifference } from "./definition-difference.ts";
export { type DefinitionOptions, definitionHash, definitionOf } from "./definition-hash.ts";
export {
  CONFIDENCE_KEY,
  type DescribeOptions,
  describeTool,
  inputSchemaForModel,
} from "./describe-tool.ts";
export type { ExternalOrigin, OperatorWord } from "./external-tool.ts";
export { inputError } from "./input-error.ts";
export { compileJsonSchema, type JsonSchemaCheck } from "./json-schema/compile-json-schema.ts";
export { type MadeUndo, makeUndo } from "./make-undo.ts";
export {
  EFFECTS,
  type Effect,
  metadataOf,
  NO_METADATA,
  PERMISSION_CLASSES,
  type PermissionClass,
  type ToolMetadata,
} from "./metadata.ts";
export { previewCall } from "./preview-call.ts";
export { createReadResult, READ_RESULT } from "./read-result.ts";
export {
  createRegistry,
  type Registry,
  type RegistryChange,
  type RegistryListener,
} from "./registry.ts";
export {
  createResultProcessor,
  forSharedUse,
  type ProcessedResult,
  processResult,
  type ResultProcessor,
  type ResultProcessorOptions,
} from "./result-processor.ts";
export {
  openResultStore,
  type ResultOwner,
  type ResultPart,
  type ResultRange,
  type ResultStore,
  type ResultStoreOptions,
  type StoredResult,
} from "./result-store.ts";
export { highestClass, SAFETY_CLASSES, type SafetyClass, safetyClassOf } from "./safety-class.ts";
export {
  isDryRunnable,
  isReversible,
  saferFirst,
  safetyLevelOf,
  safetyWarning,
} from "./safety-level.ts";
export type { SafetySheet } from "./safety-sheet.ts";
export { sampleCall } from "./sample-call.ts";
export { type SecretField, secretFieldsOf } from "./secret-fields.ts";
export type { StandardIssue, StandardResult, StandardSchema } from "./standard-schema.ts";
export type {
  DescriptionContext,
  DryRun,
  InputIssue,
  ParsedInput,
  ProbeAnswer,
  Progress,
  Resource,
  Tool,
  ToolCall,
  ToolContext,
  ToolResult,
} from "./tool.ts";
export type { ToolInput } from "./tool-input.ts";
export { nameProblem, nameSkeleton, qualifierOf } from "./tool-name.ts";
export {
  createToolSearch,
  deferredCallProblem,
  type SearchingSession,
  TOOL_SEARCH,
} from "./tool-search.ts";
export type { DoneCall, InputOf, ProbeSheet, SheetCall, ToolSheet } from "./tool-sheet.ts";
export { readUndo, type UndoReading, type UndoRecipe, type UndoRecord } from "./undo.ts";
export { directoryFor, withWorkingDirectory, workingDirectoryOf } from "./working-directory.ts";
