import { openMarkdown, runTaskCases } from "./task-stores.ts";

runTaskCases("markdown", openMarkdown);
