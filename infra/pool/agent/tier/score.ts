// The score of a model in a tier: predicted request rate × seconds that a request waits less ÷ bytes.
import { expectedAt } from './profile.ts';
import { countAt, perSecond } from './rate.ts';
import type { Held, TierModel, TierState } from './state.ts';

/** Numbers that the decision about a model in gpu rests on. */
export interface Weight {
  /** Requests per second. */
  readonly predicted: number;
  /** Seconds that a request waits less because the model is in gpu. */
  readonly saved: number;
  readonly bytes: number;
  /** Seconds of waiting saved per second and GB. */
  readonly score: number;
}

const GB = 1e9;
/** The ram copy of a loaded model is useful only once gpu drops it. */
const RAM_BELOW_GPU = 0.1;

/** Weighs models of one state at one time. Rates are computed once for each model. */
export class Weigher {
  readonly #state: TierState;
  readonly #now: number;
  readonly #slowOfLanguage = new Map<string, number>();
  readonly #predicted = new Map<string, number>();

  constructor(state: TierState, now: number) {
    this.#state = state;
    this.#now = now;
    for (const { language, slowRate } of state.models) {
      this.#slowOfLanguage.set(language, (this.#slowOfLanguage.get(language) ?? 0) + countAt(slowRate, now));
    }
  }

  weigh(model: TierModel): Weight {
    return {
      predicted: this.predicted(model),
      saved: secondsSaved(model, 'gpu'),
      bytes: model.gpuBytes,
      score: this.score(model, 'gpu'),
    };
  }

  score(model: TierModel, tier: Held): number {
    return (this.value(model, tier) * GB) / bytesIn(model, tier);
  }

  value(model: TierModel, tier: Held): number {
    const rate = tier === 'ssd' ? perSecond(model.slowRate, this.#now) : this.predicted(model);
    return rate * secondsSaved(model, tier);
  }

  /** Requests per second: what was observed, and a share of the rise that the profile expects. */
  predicted(model: TierModel): number {
    const known = this.#predicted.get(model.id);
    if (known !== undefined) return known;
    const observed = perSecond(model.rate, this.#now);
    const rise = Math.max(0, (this.#expected(model) ?? 0) - observed);
    const predicted = observed + rise * this.#state.settings.profileShare;
    this.#predicted.set(model.id, predicted);
    return predicted;
  }

  /** The model's share of what its language expects `leadMs` from now. */
  #expected({ language, slowRate }: TierModel): number | undefined {
    const { profiles, settings } = this.#state;
    const profile = profiles.get(language);
    const ofLanguage = profile && expectedAt(profile, this.#now + settings.leadMs);
    if (ofLanguage === undefined) return undefined;
    const all = this.#slowOfLanguage.get(language) ?? 0;
    return all === 0 ? 0 : (ofLanguage * countAt(slowRate, this.#now)) / all;
  }
}

export const bytesIn = ({ gpuBytes, fileBytes }: TierModel, tier: Held): number =>
  tier === 'gpu' ? gpuBytes : fileBytes;

function secondsSaved({ loadSeconds, inRam, inSsd, device }: TierModel, tier: Held): number {
  if (tier === 'ssd') return loadSeconds.blob - loadSeconds.ssd;
  if (tier === 'ram') return (loadSeconds.ssd - loadSeconds.ram) * (device === undefined ? 1 : RAM_BELOW_GPU);
  return loadSeconds[inRam ? 'ram' : inSsd ? 'ssd' : 'blob'];
}
