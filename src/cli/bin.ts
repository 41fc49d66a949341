#!/usr/bin/env node
// Checked before any import: on an older Node the database driver ends the process without a message.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 18)) {
  console.error(`sallyport needs Node 22.18 or newer; this is ${process.versions.node}.`);
  process.exitCode = 1;
} else if (process.argv[2] === "hook") {
  // Started by coding agents for every tool call: none of the other commands is loaded.
  const { runHook } = await import("../coding-agents/hook.ts");
  await runHook(process.argv.slice(3));
} else {
  const { main } = await import("./main.ts");
  process.exitCode = await main(process.argv.slice(2));
}
