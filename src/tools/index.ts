export type { FileToolOptions } from "./builtin/file-place.ts";
export { fileTools } from "./builtin/files.ts";
export { httpFetch, httpSend } from "./builtin/http.ts";
export { payloadTool } from "./builtin/payload.ts";
export { postgresDatabase } from "./builtin/postgres-database.ts";
export { shellRun } from "./builtin/shell-run.ts";
export {
  sqlDryRun,
  sqlQuery,
  sqlStagingTools,
} from "./builtin/sql-query.ts";
export { sqlRowTools } from "./builtin/sql-rows.ts";
export { type SqlDatabase, type SqlTable, stagingDatabase } from "./builtin/sql-table.ts";
export { sqlRestoreRow, sqlUpdateRow } from "./builtin/sql-update-row.ts";
export { sqliteDatabase } from "./builtin/sqlite-database.ts";
export {
  createDeferredRegistry,
  createToolSearch,
  type DeferredRegistry,
  deferredCallProblem,
  registerDeferredTool,
  type SearchingSession,
} from "./deferred-registry.ts";
export type {
  CheckedInput,
  DoneCall,
  ProbeSheet,
  SheetCall,
  StandardIssue,
  StandardResult,
  StandardSchema,
  ToolInput,
  ToolSheet,
} from "./define-tool.ts";
export { defineTool, inputError, sampleCall } from "./define-tool.ts";
export { compileJsonSchema, type JsonSchemaCheck } from "./json-schema/compile-json-schema.ts";
export {
  CONFIDENCE_KEY,
  createRegistry,
  type DefinitionChange,
  type DefinitionOptions,
  type DescribeOptions,
  definitionDifference,
  definitionHash,
  definitionOf,
  describeTool,
  inputSchemaForModel,
  nameProblem,
  nameSkeleton,
  qualifierOf,
  type Registry,
  type RegistryChange,
  type RegistryListener,
  TOOL_SEARCH,
} from "./registry.ts";
export {
  openResultStore,
  type ResultOwner,
  type ResultPart,
  type ResultRange,
  type ResultStore,
  type ResultStoreOptions,
  type StoredResult,
} from "./result-store.ts";
export { type SecretField, secretFieldsOf } from "./secret-fields.ts";
export type {
  DescriptionContext,
  DryRun,
  ExternalOrigin,
  InputIssue,
  JudgePlace,
  OperatorWord,
  ParsedInput,
  Presented,
  PresentedField,
  ProbeAnswer,
  Progress,
  Resource,
  SafetySheet,
  Tool,
  ToolCall,
  ToolContext,
  ToolResult,
} from "./tool.ts";
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
} from "./tool.ts";
export {
  createReadResult,
  createResultProcessor,
  directoryFor,
  forSharedUse,
  type MadeUndo,
  makeUndo,
  type ProcessedResult,
  previewCall,
  processResult,
  READ_RESULT,
  type ResultProcessor,
  type ResultProcessorOptions,
  readUndo,
  type UndoReading,
  type UndoRecipe,
  type UndoRecord,
  withWorkingDirectory,
  workingDirectoryOf,
} from "./tool-call.ts";
