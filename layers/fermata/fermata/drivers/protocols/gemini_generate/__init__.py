"""Google's generateContent protocol (decision 0345)."""
