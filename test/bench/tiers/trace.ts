// Seeded traces of requests to models. They model: languages whose traffic follows the day of their time zone; models of a
// language with Zipf shares that drift from day to day; revisions that replace their predecessors at some hour, with its
// traffic; and sessions, as of an upload's pieces: a run of requests to one model. Nothing in them was tuned to a policy;
// sizes and load times follow measurements on one machine (SSD 1.2 GB/s, memory 12 GB/s, 0.12 s for initialisation).
import { seeded } from '../../../shared/registry/seeded.ts';

export interface TraceModel {
  readonly id: string;
  readonly language: string;
  readonly bytes: number;
}

export interface Request {
  /** Ms since the trace's start, a midnight UTC. */
  readonly at: number;
  /** Index of the model. */
  readonly model: number;
}

export interface Trace {
  readonly models: readonly TraceModel[];
  readonly requests: readonly Request[];
  readonly days: number;
}

export interface TraceShape {
  readonly models: number;
  readonly languages: number;
  readonly days: number;
  readonly perSecond: number;
  /** Share of the requests that come in sessions. */
  readonly sessions: number;
  /** Standard deviation of the logarithm of a model's daily change of popularity. */
  readonly drift: number;
  /** Revisions replaced each day. */
  readonly releases: number;
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const SESSION_REQUESTS = 20;
const SESSION_GAP_MS = 3_000;

export function makeTrace(shape: TraceShape, seed: number): Trace {
  const random = seeded(seed);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const size = () => Math.min(3.2e9, Math.max(0.06e9, 0.5e9 * Math.exp(0.8 * normal())));
  const languages = Array.from({ length: shape.languages }, (_, at) => ({
    name: `l${at}`,
    weight: 1 / (1 + at) ** 0.7,
    peak: random() * 24,
  }));
  const models: TraceModel[] = [];
  /** Model that serves each name now, its popularity inside its language, and when its next revision comes. */
  const served = Array.from({ length: shape.models }, (_, at) => {
    const language = languages[at % languages.length]!;
    models.push({ id: `m${at}@1`, language: language.name, bytes: size() });
    return { language, model: at, popularity: 1 / (1 + Math.floor(at / languages.length)) ** 0.9 };
  });
  const requests: Request[] = [];
  for (let hour = 0; hour < shape.days * 24; hour += 1) {
    if (hour % 24 === 0) for (const one of served) one.popularity *= Math.exp(shape.drift * normal());
    if (random() < shape.releases / 24) {
      const name = Math.floor(random() * served.length);
      const one = served[name]!;
      models.push({ id: `m${name}@${hour}`, language: one.language.name, bytes: models[one.model]!.bytes });
      one.model = models.length - 1;
    }
    const inLanguage = (name: string) =>
      served.filter(({ language }) => language.name === name).reduce((sum, { popularity }) => sum + popularity, 0);
    const totals = new Map(languages.map(({ name }) => [name, inLanguage(name)]));
    const weights = served.map(({ language, popularity }) => {
      const day = 1 + 0.9 * Math.cos((2 * Math.PI * (hour - language.peak)) / 24);
      return (language.weight * day * popularity) / totals.get(language.name)!;
    });
    const whole = languages.reduce((sum, { weight }) => sum + weight, 0);
    const perHour = (shape.perSecond * 3_600) / whole;
    served.forEach(({ model }, at) => {
      const expected = weights[at]! * perHour;
      const alone = poisson(expected * (1 - shape.sessions), random);
      for (let n = 0; n < alone; n += 1) requests.push({ at: (hour + random()) * HOUR_MS, model });
      const sessions = poisson((expected * shape.sessions) / SESSION_REQUESTS, random);
      for (let n = 0; n < sessions; n += 1) {
        let when = (hour + random()) * HOUR_MS;
        for (let left = SESSION_REQUESTS; left > 0; left -= 1) {
          requests.push({ at: when, model });
          when += -Math.log(1 - random()) * SESSION_GAP_MS;
        }
      }
    });
  }
  requests.sort((one, other) => one.at - other.at);
  return { models, requests: requests.filter(({ at }) => at < shape.days * DAY_MS), days: shape.days };
}

function poisson(mean: number, random: () => number): number {
  let left = mean;
  let count = 0;
  for (;;) {
    left += Math.log(1 - random());
    if (left < 0) return count;
    count += 1;
  }
}
