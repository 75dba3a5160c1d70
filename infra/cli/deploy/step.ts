// One check of a deployment.
import type { Answer } from '../answer.ts';

export interface Step {
  readonly step: string;
  readonly outcome: 'ok' | 'fail' | 'skip';
  readonly detail: string;
}

export const passed = (step: string, detail: string): Step => ({ step, outcome: 'ok', detail });
export const failed = (step: string, why: string | Answer): Step => ({
  step,
  outcome: 'fail',
  detail: typeof why === 'string' ? why : why.text,
});
