import { BaseSequencer, type TestSequencerConstructor, type TestSpecification } from 'vitest/node';

/**
 * Returns a sequencer that starts the named files first, in their order. A clean clone has no durations, and Vitest then
 * goes by the size of files: a small slow one would start last and run alone at the end.
 */
export function slowestFirst(...names: readonly string[]): TestSequencerConstructor {
  const rank = ({ moduleId }: TestSpecification) => {
    const place = names.findIndex((name) => moduleId.endsWith(`/${name}`));
    return place < 0 ? names.length : place;
  };
  return class extends BaseSequencer {
    override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
      return (await super.sort(files)).sort((one, other) => rank(one) - rank(other));
    }
  };
}
