export type { FileToolOptions } from "./builtin/file-place.ts";
export { fileTools } from "./builtin/files.ts";
export { httpFetch, httpSend } from "./builtin/http.ts";
export { postgresDatabase } from "./builtin/postgres-database.ts";
export { shellRun } from "./builtin/shell-run.ts";
export {
  type StagingDatabase,
  sqlDryRun,
  sqlQuery,
  sqlStagingTools,
  stagingDatabase,
} from "./builtin/sql-query.ts";
export type { SqlDatabase, SqlTable } from "./builtin/sql-table.ts";
export { sqlRestoreRow, sqlUpdateRow } from "./builtin/sql-update-row.ts";
export { sqliteDatabase } from "./builtin/sqlite-database.ts";
export {
  createDeferredRegistry,
  createToolSearch,
  type DeferredRegistry,
  deferredCallProblem,
  registerDeferredTool,
  type SearchingSession,
  TOOL_SEARCH,
} from "./deferred-registry.ts";
export type { DoneCall, InputOf, ProbeSheet, SheetCall, ToolSheet } from "./define-tool.ts";
export { defineTool, sampleCall } from "./define-tool.ts";
export {
  CONFIDENCE_KEY,
  type DefinitionChange,
  type DefinitionOptions,
  type DescribeOptions,
  definitionDifference,
  definitionHash,
  definitionOf,
  describeTool,
  inputSchemaForModel,
} from "./definition.ts";
export type { ExternalOrigin, OperatorWord } from "./external-tool.ts";
export { compileJsonSchema, type JsonSchemaCheck } from "./json-schema/compile-json-schema.ts";
export {
  createRegistry,
  nameProblem,
  nameSkeleton,
  qualifierOf,
  type Registry,
  type RegistryChange,
  type RegistryListener,
} from "./registry.ts";
export { directoryFor, withWorkingDirectory, workingDirectoryOf } from "./resources.ts";
export {
  createReadResult,
  createResultProcessor,
  forSharedUse,
  type ProcessedResult,
  processResult,
  READ_RESULT,
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
export type { SafetySheet } from "./safety.ts";
export {
  auditOperationOf,
  type Capability,
  capabilityOf,
  EFFECTS,
  type Effect,
  guessOperation,
  highestClass,
  isDryRunnable,
  isReversible,
  metadataOf,
  NO_CAPABILITY,
  NO_METADATA,
  PERMISSION_CLASSES,
  type PermissionClass,
  SAFETY_CLASSES,
  type SafetyClass,
  type SafetyLevel,
  saferFirst,
  safetyClassOf,
  safetyLevelOf,
  safetyWarning,
  type ToolMetadata,
} from "./safety.ts";
export { type SecretField, secretFieldsOf } from "./secret-fields.ts";
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
export type { StandardIssue, StandardResult, StandardSchema, ToolInput } from "./tool-input.ts";
export { inputError } from "./tool-input.ts";
export {
  type MadeUndo,
  makeUndo,
  previewCall,
  readUndo,
  type UndoReading,
  type UndoRecipe,
  type UndoRecord,
} from "./undo.ts";
