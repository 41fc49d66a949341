import { runStoreCases } from "../support/run-store-cases.ts";

runStoreCases("memory");
