"""Carry one provider request: connection, cancellation, URL checks and stream decoding."""
