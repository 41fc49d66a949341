export { createDice, type Dice } from "../../src/crashkit/child.ts";
