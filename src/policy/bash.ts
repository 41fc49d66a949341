import type { GateAnswer } from "../model/finding.ts";
import { allow, ask, deny, joinAnswers, shown } from "./answers.ts";
import type { DangerousPath } from "./dangerous-paths.ts";
import type { CompiledPolicy } from "./policy.ts";
import { allowingRule, otherKinds } from "./rule-answers.ts";
import type { SeenCall, SeenScript } from "./seen-call.ts";
import {
  DANGEROUS_COMMANDS,
  type Danger,
  type DangerousCommand,
  dangersOfPart,
  dangersOfRedirect,
  STRUCTURE_DANGERS,
} from "./shell/find-dangers.ts";

import type { ShellPart } from "./shell/script.ts";

const POLICY = "permission.bash";

export interface BashLimits {
  readonly policy: CompiledPolicy;
  /** Replaces `DANGEROUS_COMMANDS`. */
  readonly dangerousCommands?: readonly DangerousCommand[];
  readonly dangerousPaths?: readonly DangerousPath[];
}

/**
 * Class bash. A compound command is split, and each program in it needs a rule that allows it. One dangerous program
 * decides for the whole command. A command that cannot be resolved completely is never allowed.
 */
export function checkBash(call: SeenCall, limits: BashLimits): GateAnswer {
  if (call.scripts.length === 0) {
    return ask(
      POLICY,
      `Tool ${shown(call.facts.tool)} runs commands but did not declare which for this input, so a person has to decide.`,
    );
  }
  return joinAnswers([
    ...call.scripts.map((script) => checkScript(script, call, limits)),
    ...otherKinds(call, "command", POLICY),
  ]);
}

function checkScript(script: SeenScript, call: SeenCall, limits: BashLimits): GateAnswer {
  const commands = limits.dangerousCommands ?? DANGEROUS_COMMANDS;
  const paths = limits.dangerousPaths;
  const structures = script.structures.map(
    (id): Danger => ({ id, answer: "deny", reason: STRUCTURE_DANGERS[id] }),
  );
  const answers = [
    ...structures.map((danger) => refusal("The command", danger)),
    ...script.redirects.flatMap((redirect) => [
      ...dangersOfRedirect(redirect, paths).map((danger) =>
        refusal(`The redirection to ${shown(redirect.target.text)}`, danger),
      ),
      ...(isHarmlessTarget(redirect.target) ? [] : [REDIRECTION]),
    ]),
    ...script.blocks.map((why) => unresolved("The command", why)),
    ...script.parts
      .filter((part) => !part.isGlue)
      .flatMap((part) => [
        ...dangersOfPart(part, commands, paths).map((danger) => refusal(nameOf(part), danger)),
        permitted(part, script, call, limits),
      ]),
  ];
  return answers.length > 0 ? joinAnswers(answers) : ask(POLICY, "The command runs no program.");
}

function permitted(
  part: ShellPart,
  script: SeenScript,
  { facts }: SeenCall,
  { policy }: BashLimits,
): GateAnswer {
  if (part.blocks.length > 0) {
    return joinAnswers(part.blocks.map((why) => unresolved(nameOf(part), why)));
  }
  if (allowingRule(policy, facts, { kind: "command", part, script })) return allow();
  return ask(
    POLICY,
    `${nameOf(part)} needs a person's consent, because no rule allows it in this folder.`,
  );
}

const REDIRECTION = ask(
  POLICY,
  "A redirection to or from a file needs a person's consent. Use a file tool, or leave the output where it is, to avoid the wait.",
);

function isHarmlessTarget({ text, known }: { readonly text: string; readonly known: boolean }) {
  return known && /^\/dev\/(null|stdout|stderr)$/.test(text);
}

function refusal(what: string, { id, answer, reason }: Danger): GateAnswer {
  return answer === "deny"
    ? deny(
        `danger.${id}`,
        `${what} is refused: ${reason}. Nothing was executed. Find a way that does less, or ask a person to do this step.`,
      )
    : ask(`danger.${id}`, `${what} needs a person's consent: ${reason}.`);
}

function unresolved(what: string, why: string): GateAnswer {
  return ask(
    POLICY,
    `${what} needs a person's consent, because it cannot be judged from its text: ${why}. Plain commands with fixed words avoid the wait.`,
  );
}

/** Names the program only: its arguments may hold secrets, and messages are stored. */
function nameOf(part: ShellPart): string {
  const name = part.words[0];
  return name?.known === true
    ? `The command ${shown(name.text, 60)}`
    : "A command with a name that is not fixed";
}
