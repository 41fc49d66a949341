import { Command } from "commander";
import { SallyportError } from "../../model/errors.ts";
import { checkNotify, testChannel } from "../../notify/index.ts";
import { systemClock, toIso } from "../../util/clock.ts";
import { errorText } from "../../util/error-text.ts";
import { systemRandom } from "../../util/random.ts";
import { type ConfigFlags, NOTHING_CONFIGURED, readConfigured } from "../config-file.ts";
import { withFlags } from "../open-store.ts";
import { EXIT, print } from "../render.ts";

/** What failed for good is listed and tried again with `sallyport notices`. */
export function notifyCommand(): Command {
  const notify = new Command("notify").description("Try the channels of notifications.");
  notify
    .command("test")
    .description("Send a test message to one channel of the configuration, or to all of them.")
    .argument("[channel]")
    .option("--config <module>", "the configuration, as for serve")
    .exitOverride()
    .action(withFlags<ConfigFlags>(test));
  return notify;
}

async function test(flags: ConfigFlags, only?: string): Promise<void> {
  const terms = { source: "folder", otherwise: NOTHING_CONFIGURED } as const;
  const { config, tenant } = await readConfigured(flags, terms);
  const { notify, http } = config;
  const names = Object.keys(notify?.channels ?? {});
  if (notify === undefined || (only !== undefined && !names.includes(only))) {
    const hint =
      names.length === 0
        ? "The configuration has no notify.channels."
        : `There is no channel "${only}". The channels are ${names.join(", ")}.`;
    throw new SallyportError("not_found", { id: only ?? "notify", hint });
  }
  checkNotify(notify);
  const id = Buffer.from(systemRandom.bytes(20)).toString("hex");
  const deadline = toIso(systemClock.now() + 3_600_000);
  const message = { baseUrl: http?.publicUrl ?? "", tenant, id, deadline };
  const results: { channel: string; ok: boolean; problem: string }[] = [];
  for (const [name, channel] of Object.entries(notify.channels)) {
    if (only !== undefined && only !== name) continue;
    const problem = await testChannel(channel, message).then(() => "", errorText);
    results.push({ channel: name, ok: problem === "", problem });
  }
  const lines = results.map(({ channel, ok, problem }) =>
    ok ? `${channel}: sent` : `${channel}: failed: ${problem}`,
  );
  print({ results }, flags, lines);
  if (results.some(({ ok }) => !ok)) process.exitCode = EXIT.failed;
}
