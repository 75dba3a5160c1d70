import { no, ok, type Result } from '../../../../shared/result.ts';
import { type DetectedLanguage, languageMembers, misdirection } from '../asr/detect-language.ts';
import { type Detection, detectSpeech } from '../models/detect-speech.ts';

/** Detects the language of a recording whose model serves `served`. */
export function createDetection(request: Detection, served: readonly string[]) {
  let detected: DetectedLanguage | undefined;
  return {
    /** Decides from the first speech, which may be none. Refuses with `misdirected` a language of another model. */
    async admit(opening: Float32Array): Promise<Result<undefined>> {
      if (opening.length === 0) return ok(undefined);
      const found = await detectSpeech(opening, request);
      if (!found.ok) return found;
      const elsewhere = misdirection(found.value, served, request.languages);
      detected = found.value;
      return elsewhere ? no(elsewhere) : ok(undefined);
    },
    /** Returns the members of `final` about the language. */
    found: () => languageMembers(detected),
  };
}
