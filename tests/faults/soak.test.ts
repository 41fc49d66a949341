import { expect, test } from "vitest";
import { SCALE, scaled } from "../support/scale.ts";
import { soak } from "./soak.ts";

const SECONDS = scaled({ test: 0, proof: 12, full: 120 });
const SEED = process.env["FAULTS_SEED"] ?? String(Date.now());

// skip: at the smallest scale the processes take longer to start than they would be used
test.skipIf(SCALE === "test")(
  `G24 I1 I5 I6 I7 I14 ${SECONDS} s of load with a fault every few seconds: none lost, none twice; hours of it are \`npm run soak\``,
  async () => {
    console.log(`FAULTS_SEED=${SEED}`);
    const { figures, problems } = await soak({
      seconds: SECONDS,
      agents: 40,
      faultEveryMs: 3_000,
      seed: SEED,
    });
    console.log(figures);
    expect(problems.slice(0, 20)).toEqual([]);
    expect(figures["kills"]! + figures["pauses"]!, "void: too few faults").toBeGreaterThanOrEqual(
      SECONDS / 10,
    );
    expect(figures["effects"], "void: too few effects").toBeGreaterThan(SECONDS);
  },
  180_000 + 2_000 * SECONDS,
);
