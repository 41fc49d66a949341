export { createDice, type Dice } from "../../src/crashkit/dice.ts";
