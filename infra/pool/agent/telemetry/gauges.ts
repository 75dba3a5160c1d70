import { Gauge, type Registry } from 'prom-client';

/** By name: what it tells, and how that is read at the moment of the scrape. */
export type Gauges = Readonly<Record<string, readonly [help: string, read: () => number]>>;

/** Registers gauges without labels, read at each scrape. */
export function registerGauges(registry: Registry, gauges: Gauges): void {
  for (const [name, [help, read]] of Object.entries(gauges)) {
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  }
}
