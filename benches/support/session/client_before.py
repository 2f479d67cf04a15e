import json
import time
import urllib.request


class Client:
    def __init__(self, base_url, api_key):
        self.base_url = base_url
        self.api_key = api_key

    def get(self, path):
        request = urllib.request.Request(self.base_url + path)
        request.add_header("Authorization", "Bearer " + self.api_key)
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.load(response)
