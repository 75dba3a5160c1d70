/** Build options by the ensemble parameter that carries them. */
const settingOf = new Map([
  ['language', 'language_code'],
  ['sample_rate', 'sample_rate'],
  ['frame_milliseconds', 'ms_per_timestep'],
  ['blank', 'blank'],
  ['word_boundary', 'word_boundary'],
  ['voices', 'voices'],
  ['symbols', 'symbols'],
  ['ssml', 'ssml'],
]);

/** Returns the build options of a deployed ensemble, from its parameters. */
export function settingsFrom(
  given: Readonly<Record<string, string>>,
  half: '' | 'stream' = '',
): Record<string, string> {
  if (half === '') {
    const named = Object.entries(given).flatMap(([key, value]) => {
      const setting = settingOf.get(key);
      return setting === undefined ? [] : [[setting, value]];
    });
    return Object.fromEntries(named) as Record<string, string>;
  }
  const [hop, window] = [Number(given.hop_milliseconds), Number(given.window_milliseconds)];
  if (!(hop > 0 && window >= hop)) return {};
  return { chunk_size: String(hop / 1000), overlap_milliseconds: String(window - hop) };
}
