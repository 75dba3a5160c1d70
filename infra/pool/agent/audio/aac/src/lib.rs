//! AAC-LC packets to samples: Symphonia's decoder with the four functions that a WebAssembly host needs.
//! One instance of the module decodes one stream. A panic traps; the host then drops the instance.
use std::cell::RefCell;
use symphonia_codec_aac::AacDecoder;
use symphonia_core::codecs::audio::well_known::CODEC_ID_AAC;
use symphonia_core::codecs::audio::{AudioCodecParameters, AudioDecoder, AudioDecoderOptions};
use symphonia_core::packet::PacketRef;

/// Longest packet: an AAC frame has at most 6,144 bits a channel, and ADTS has 13 bits for its length.
const INPUT_BYTES: usize = 8192;
/// Samples of one packet, of two channels.
const OUTPUT_SAMPLES: usize = 2048;

struct State {
    input: [u8; INPUT_BYTES],
    output: [f32; OUTPUT_SAMPLES],
    decoder: Option<AacDecoder>,
}

thread_local! {
    static STATE: RefCell<State> =
        const { RefCell::new(State { input: [0; INPUT_BYTES], output: [0.0; OUTPUT_SAMPLES], decoder: None }) };
}

/// Address of `INPUT_BYTES` bytes, for the AudioSpecificConfig and then each packet.
#[no_mangle]
pub extern "C" fn input() -> *mut u8 {
    STATE.with(|state| state.borrow_mut().input.as_mut_ptr())
}

/// Address of the samples of the last packet, one channel after the other.
#[no_mangle]
pub extern "C" fn output() -> *const f32 {
    STATE.with(|state| state.borrow().output.as_ptr())
}

/// Opens the decoder with the AudioSpecificConfig (ISO/IEC 14496-3 §1.6.2.1) in `input`. Returns 1, or 0 on failure.
#[no_mangle]
pub extern "C" fn open(bytes: usize) -> u32 {
    STATE.with(|state| {
        let mut state = state.borrow_mut();
        let config = state.input[..bytes.min(INPUT_BYTES)].to_vec().into_boxed_slice();
        let mut params = AudioCodecParameters::new();
        params.for_codec(CODEC_ID_AAC).with_extra_data(config);
        state.decoder = AacDecoder::try_new(&params, &AudioDecoderOptions::default()).ok();
        u32::from(state.decoder.is_some())
    })
}

/// Decodes the packet in `input`. Returns samples per channel, 0 when it is damaged.
#[no_mangle]
pub extern "C" fn decode(bytes: usize) -> usize {
    STATE.with(|state| {
        let State { input, output, decoder } = &mut *state.borrow_mut();
        let Some(decoder) = decoder else { return 0 };
        let packet = PacketRef::new(0, Default::default(), Default::default(), &input[..bytes.min(INPUT_BYTES)]);
        let Ok(decoded) = decoder.decode_ref(&packet) else { return 0 };
        let (frames, planes) = (decoded.frames(), decoded.num_planes());
        if frames == 0 || frames * planes > OUTPUT_SAMPLES {
            return 0;
        }
        let mut channels: Vec<&mut [f32]> = output[..frames * planes].chunks_mut(frames).collect();
        decoded.copy_to_slice_planar(&mut channels);
        frames
    })
}
