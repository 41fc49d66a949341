export { auditOperationOf, guessOperation } from "./audit-operation.ts";
export type { FileToolOptions } from "./builtin/file-place.ts";
export { fileTools } from "./builtin/file-tools.ts";
export { httpFetch } from "./builtin/http-fetch.ts";
export { httpSend } from "./builtin/http-send.ts";
export { postgresDatabase } from "./builtin/postgres-database.ts";
export { shellRun } from "./builtin/shell-run.ts";
export type { SqlDatabase } from "./builtin/sql-database.ts";
export { sqlDryRun } from "./builtin/sql-dry-run.ts";
export { sqlQuery } from "./builtin/sql-query.ts";
export { sqlStagingTools } from "./builtin/sql-staging-tools.ts";
export type { SqlTable } from "./builtin/sql-table.ts";
export { sqlRestoreRow, sqlUpdateRow } from "./builtin/sql-update-row.ts";
export { sqliteDatabase } from "./builtin/sqlite-database.ts";
export { type StagingDatabase, stagingDatabase } from "./builtin/staging-database.ts";
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
