import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { allowAlways, createGate, type Policy } from "sallyport";
import { verifyTools } from "sallyport/delegation";
import { sqliteStore } from "sallyport/store/sqlite";
import { fileTools } from "sallyport/tools";
import { fits } from "./validators.ts";

/** A small shop: prices without tax, a check that fails because of it, and an imprint that no agent may change. */
export function makeShop(root: string) {
  const folder = path.join(root, "shop");
  mkdirSync(path.join(folder, "docs"), { recursive: true });
  const files = {
    "prices.mjs": "export const price = (net) => net;\n",
    "imprint.txt": "Example Ltd.\n",
    "check.mjs":
      'import { price } from "./prices.mjs";\nif (price(100) !== 119) throw "price(100) is " + price(100);\nconsole.log("price(100) is 119");\n',
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
  return folder;
}

export const readShop = (folder: string, name: string) =>
  readFileSync(path.join(folder, name), "utf8");

/** The same gate in every process: they share only the store. */
export function openGate(root: string) {
  const store = sqliteStore({ file: path.join(root, "sallyport.db") });
  const folder = path.join(root, "shop");
  const policy: Policy = {
    version: "1",
    rules: [
      {
        id: "prices are asked about",
        effect: "ask",
        tool: "files.*",
        path: path.join(folder, "prices.mjs"),
        access: "write",
        reason: "customers see prices at once",
      },
      {
        id: "evidence may be left",
        effect: "allow",
        tool: "verify.result",
        reason: "it changes nothing but the record of the run",
      },
      {
        id: "the check may run",
        effect: "allow",
        tool: "verify.command",
        command: ["node", "check.mjs"],
        folder,
        reason: "it only reads",
      },
    ],
  };
  const gate = createGate({
    store,
    tenant: "acme",
    tools: [...fileTools(), ...verifyTools({ store, tenant: "acme" })],
    validators: { tech: fits("tech"), business: fits("business") },
    guard: allowAlways,
    fileRoots: [{ path: folder, access: "write" }],
    policy,
  });
  return { gate, store, folder };
}
